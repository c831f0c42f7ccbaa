// The two entries of the language status: which GPU the numbers are for, and what the server is doing.
import * as vscode from 'vscode';
import { isCuda, selector } from './documents';

/** `kernelLsp/status`, sent by the server for a document when something about it changed. */
export interface DocumentStatus {
  readonly uri: string;
  readonly state: 'idle' | 'building' | 'failed' | 'no compiler';
  readonly message: string;
  readonly gpu: string | null;
  readonly gpuWhy: string | null;
  readonly arch: string | null;
  /** ISO time of the end of the last build. */
  readonly lastBuild: string | null;
  /** Whether the last build's instructions are known. */
  readonly instructions: boolean;
}

export type ServerState = 'starting' | 'running' | 'stopped';

export class Status implements vscode.Disposable {
  private readonly gpu = vscode.languages.createLanguageStatusItem('kernelLsp.gpu', selector);
  private readonly server = vscode.languages.createLanguageStatusItem('kernelLsp.server', selector);
  private readonly documents = new Map<string, DocumentStatus>();
  private readonly subscriptions: vscode.Disposable[];
  private state: ServerState = 'starting';
  private why = '';

  constructor() {
    this.gpu.name = 'Kernel LSP GPU';
    this.gpu.command = { title: 'Select GPU', command: 'kernelLsp.selectGpu' };
    this.server.name = 'Kernel LSP';
    this.subscriptions = [
      this.gpu,
      this.server,
      vscode.window.onDidChangeActiveTextEditor(() => this.show()),
      vscode.workspace.onDidCloseTextDocument((document) => this.documents.delete(document.uri.toString())),
      vscode.workspace.onDidGrantWorkspaceTrust(() => this.show()),
    ];
    this.show();
  }

  dispose(): void {
    this.subscriptions.forEach((subscription) => subscription.dispose());
  }

  /** The server's own state; `why` is a short reason where it is stopped. */
  setServer(state: ServerState, why = ''): void {
    this.state = state;
    this.why = why;
    if (state !== 'running') {
      this.documents.clear();
    }
    this.show();
  }

  setDocument(status: DocumentStatus): void {
    this.documents.set(vscode.Uri.parse(status.uri).toString(), status);
    this.show();
  }

  /** Name of the GPU whose numbers the active document shows. */
  get activeGpu(): string | undefined {
    return this.activeDocument()?.gpu ?? undefined;
  }

  /** All that is known, for the debug information. */
  snapshot(): object {
    return { state: this.state, why: this.why, documents: [...this.documents.values()] };
  }

  private activeDocument(): DocumentStatus | undefined {
    const document = vscode.window.activeTextEditor?.document;
    return document && isCuda(document) ? this.documents.get(document.uri.toString()) : undefined;
  }

  private show(): void {
    const status = this.activeDocument();
    this.showGpu(status);
    this.showServer(status);
  }

  private showGpu(status: DocumentStatus | undefined): void {
    const known = status?.gpu ? [status.gpu, status.arch].filter(Boolean).join(' · ') : undefined;
    this.gpu.text = known ?? 'No GPU chosen yet';
    this.gpu.detail = known ? (status?.gpuWhy ?? '') : 'known after the first build';
  }

  private showServer(status: DocumentStatus | undefined): void {
    const item = this.server;
    item.busy = this.state === 'starting' || status?.state === 'building';
    item.severity = vscode.LanguageStatusSeverity.Information;
    item.command = { title: 'Show log', command: 'kernelLsp.showLog' };
    if (this.state === 'starting') {
      item.text = 'Kernel LSP is starting';
      item.detail = '';
    } else if (this.state === 'stopped') {
      item.text = 'Kernel LSP is not running';
      item.detail = this.why;
      item.severity = vscode.LanguageStatusSeverity.Error;
      item.command = { title: 'Restart', command: 'kernelLsp.restart' };
    } else {
      item.text = documentText(status);
      item.detail = status?.message ?? '';
      if (status?.state === 'failed' || status?.state === 'no compiler') {
        item.severity = vscode.LanguageStatusSeverity.Warning;
      }
      if (!vscode.workspace.isTrusted) {
        item.detail = 'Restricted Mode';
        item.command = { title: 'Manage trust', command: 'workbench.trust.manage' };
      }
    }
  }
}

function documentText(status: DocumentStatus | undefined): string {
  const at = status?.lastBuild ? new Date(status.lastBuild).toLocaleTimeString([], { timeStyle: 'short' }) : '';
  switch (status?.state) {
    case undefined:
      return 'Kernel LSP is ready';
    case 'building':
      return 'Building';
    case 'failed':
      return `Not built at ${at}`;
    case 'no compiler':
      return 'No compiler';
    case 'idle':
      return at ? `Built at ${at}` : 'Kernel LSP is ready';
  }
}
