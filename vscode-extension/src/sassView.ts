// A kernel's instructions as a read-only document beside the source: the scheme kernel-lsp-sass.
import * as vscode from 'vscode';
import { isCuda } from './documents';
import type { Server } from './server';

const SCHEME = 'kernel-lsp-sass';

/** `kernelLsp/sass`: the text, and which source lines each of its rows belongs to (rows and lines from 0). */
interface Sass {
  readonly text: string;
  readonly kernel: string | null;
  readonly name: string | null;
  readonly kernels: readonly { readonly kernel: string; readonly name: string }[];
  readonly links: readonly { readonly row: number; readonly lines: readonly { uri: string; line: number }[] }[];
}

interface Asked {
  readonly uri: string;
  readonly kernel: string | null;
}

export class SassView implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  private readonly registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
  readonly onDidChange = this.changed.event;

  constructor(private readonly server: Server) {
    server.onInstructions((uri) => this.refresh(uri));
  }

  dispose(): void {
    this.registration.dispose();
    this.changed.dispose();
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    return (await this.ask(JSON.parse(uri.query) as Asked))?.text ?? '// The Kernel LSP server is not running.\n';
  }

  /** Opens a kernel's instructions; without one, those of a kernel of the active file that the user picks. */
  async open(uri?: string, kernel?: string): Promise<void> {
    const active = vscode.window.activeTextEditor?.document;
    const client = this.server.running;
    const of = uri ?? (active && isCuda(active) ? client?.code2ProtocolConverter.asUri(active.uri) : undefined);
    if (of === undefined) {
      void vscode.window.showInformationMessage('Open a .cu or .cuh file first: the instructions are of its kernels.');
      return;
    }
    const asked = kernel ?? (await this.pick(of));
    if (asked === undefined) {
      return;
    }
    const sass = await this.ask({ uri: of, kernel: asked });
    const path = `/${sass?.name ?? 'kernel'}.sass`;
    const document = await vscode.workspace.openTextDocument(
      vscode.Uri.from({ scheme: SCHEME, path, query: JSON.stringify({ uri: of, kernel: asked }) }),
    );
    await vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true, preview: true });
  }

  private async pick(uri: string): Promise<string | undefined> {
    const sass = await this.ask({ uri, kernel: null });
    const kernels = sass?.kernels ?? [];
    if (kernels.length === 0) {
      void vscode.window.showInformationMessage(sass?.text.replace(/^\/\/ /, '').trim() ?? 'The Kernel LSP server is not running.');
    }
    if (kernels.length < 2) {
      return kernels[0]?.kernel;
    }
    const items = kernels.map(({ kernel, name }) => ({ label: name, description: kernel, kernel }));
    return (await vscode.window.showQuickPick(items, { title: 'Kernel whose instructions are shown' }))?.kernel;
  }

  private ask(asked: Asked): Promise<Sass> | undefined {
    return this.server.running?.sendRequest<Sass>('kernelLsp/sass', asked);
  }

  private refresh(uri: string): void {
    for (const document of vscode.workspace.textDocuments) {
      if (document.uri.scheme === SCHEME && (JSON.parse(document.uri.query) as Asked).uri === uri) {
        this.changed.fire(document.uri);
      }
    }
  }
}
