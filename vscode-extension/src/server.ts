// Starts and stops the server. Restarts are single-flight: asked for again while one runs, one more follows it.
import * as path from 'node:path';
import * as vscode from 'vscode';
import {
  CloseAction,
  ErrorAction,
  LanguageClient,
  RevealOutputChannelOn,
  ShowMessageNotification,
  State,
  TransportKind,
  type CloseHandlerResult,
  type LanguageClientOptions,
  type ServerOptions,
} from 'vscode-languageclient/node';
import { selector } from './documents';
import { findInterpreter, type Interpreter, type Search } from './interpreter';
import { forget, log, pass, showLog, tell, type Action } from './log';
import { INSTALL_TITLE, type OwnEnvironment } from './ownEnvironment';
import { pick } from './pick';
import { environment } from './process';
import { interpreterSetting, section } from './settings';
import type { DocumentStatus, Status } from './status';

const restartAction: Action = { title: 'Restart', run: () => vscode.commands.executeCommand('kernelLsp.restart') };
const MOST_RESTARTS = 4;
const RESTART_WINDOW_MS = 180_000;
const PAGES = ['.bottleneck.md', '.benchmark.md', '.compare.md'];

/** Its own messages have no way out as a button and come in pairs: they go to the log, and `tell` speaks. */
class QuietClient extends LanguageClient {
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }
}

export class Server {
  private client: LanguageClient | undefined;
  private lastWords = '';
  private hasRun = false;
  private ends: number[] = [];
  private search: Search = { rejected: [] };
  private restarting: Promise<void> | undefined;
  private again = false;
  private readonly instructions = new vscode.EventEmitter<string>();
  /** The URI of a document whose instructions are those of its latest build. */
  readonly onInstructions = this.instructions.event;

  constructor(
    private readonly cwd: string,
    private readonly own: OwnEnvironment,
    private readonly status: Status,
  ) {}

  /** Starts the server, or ends it and starts it anew with the settings of now. */
  restart(): Promise<void> {
    if (this.restarting !== undefined) {
      this.again = true;
      return this.restarting;
    }
    this.restarting = this.restartUntilCurrent().finally(() => (this.restarting = undefined));
    return this.restarting;
  }

  async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    await client?.dispose().catch((error) => log.warn(`the server did not end properly: ${error}`));
  }

  /** The running client, undefined where there is none. */
  get running(): LanguageClient | undefined {
    return this.client?.state === State.Running ? this.client : undefined;
  }

  /** What the last search for an interpreter gave. */
  get lastSearch(): Search {
    return this.search;
  }

  private async restartUntilCurrent(): Promise<void> {
    do {
      this.again = false;
      await this.stop();
      this.status.setServer('starting');
      await this.start();
    } while (this.again);
  }

  private async start(): Promise<void> {
    this.search = await findInterpreter(await this.own.python(), this.cwd);
    this.search.rejected.forEach(({ command, from, why }) => log.info(`not used: ${command.join(' ')} (${from}): ${why}`));
    const interpreter = this.search.found;
    if (interpreter === undefined) {
      this.status.setServer('stopped', 'no Python with kernel-lsp');
      void tell('interpreter', missingInterpreter(this.search), ...this.waysOut());
      return;
    }
    forget('interpreter');
    this.lastWords = '';
    this.hasRun = false;
    this.ends = [];
    const client = new QuietClient('kernelLsp', 'Kernel LSP', this.serverOptions(interpreter), this.clientOptions());
    this.client = client;
    client.onNotification('kernelLsp/status', (status: DocumentStatus) => {
      this.status.setDocument(status);
      if (status.instructions) {
        this.instructions.fire(status.uri);
      }
    });
    client.onRequest('kernelLsp/pick', pick);
    client.onNotification(ShowMessageNotification.type, pass); // in place of the client's own: those have no buttons
    client.onDidChangeState(({ newState }) => {
      log.info(`server ${State[newState].toLowerCase()}`);
      if (this.client === client && newState === State.Running) {
        this.hasRun = true;
        this.status.setServer('running');
      } else if (this.client === client && newState === State.Starting) {
        this.status.setServer('starting');
      }
    });
    try {
      await client.start();
      forget('start');
      await this.offerUpdate();
    } catch (error) {
      this.client = undefined;
      this.status.setServer('stopped', 'it ended while starting');
      const why = this.lastWords || (error as Error).message;
      void tell('start', `The Kernel LSP server ended while starting: ${why}`, showLog);
    }
  }

  /** The connection has ended and nobody asked for it: start anew, but not for ever. */
  private closed(): CloseHandlerResult {
    const now = Date.now();
    this.ends = [...this.ends.filter((end) => now - end < RESTART_WINDOW_MS), now];
    if (!this.hasRun) {
      return { action: CloseAction.DoNotRestart, handled: true }; // `start` says why
    }
    if (this.ends.length <= MOST_RESTARTS) {
      return { action: CloseAction.Restart, handled: true };
    }
    this.status.setServer('stopped', `it ended ${this.ends.length} times`);
    const why = this.lastWords ? ` Its last words: ${this.lastWords}` : '';
    void tell('crashes', `The Kernel LSP server keeps ending and is left off.${why}`, restartAction, showLog);
    return { action: CloseAction.DoNotRestart, handled: true };
  }

  /** One line of the server's stderr: `LEVEL name: text`, or anything a library wrote. */
  private logServerLine(line: string): void {
    if (line.trim() === '') {
      return;
    }
    this.lastWords = line.trim();
    const text = `[server] ${line.trimEnd()}`;
    if (/\b(ERROR|CRITICAL)\b/.test(line)) {
      log.error(text);
    } else if (/\bWARNING\b/.test(line)) {
      log.warn(text);
    } else {
      log.info(text);
    }
  }

  private serverOptions(interpreter: Interpreter): ServerOptions {
    const [command, ...args] = interpreter.command;
    const all = [...args, '-m', 'kernel_lsp', 'serve'];
    log.info(`starting kernel-lsp ${interpreter.server} on Python ${interpreter.python} (${interpreter.from})`);
    log.info(`$ ${[command, ...all].join(' ')}`);
    return { command, args: all, transport: TransportKind.stdio, options: { cwd: this.cwd, env: environment() } };
  }

  private clientOptions(): LanguageClientOptions {
    return {
      documentSelector: selector,
      outputChannel: log,
      traceOutputChannel: log,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      diagnosticCollectionName: 'kernel-lsp',
      initializationOptions: { trusted: vscode.workspace.isTrusted, status: true, sassView: true, pick: true, settings: section() },
      initializationFailedHandler: () => false,
      errorHandler: { error: () => ({ action: ErrorAction.Continue }), closed: () => this.closed() },
      stdioOptions: {
        stdout: () => undefined,
        stderr: (stream) => stream.setEncoding('utf8').on('data', (text: string) => text.split('\n').forEach((line) => this.logServerLine(line))),
      },
      middleware: {
        window: { showDocument: async (params, token, next) => (await showReport(params.uri)) ?? next(params, token) },
      },
    };
  }

  private waysOut(): Action[] {
    const select: Action = { title: 'Select interpreter', run: () => vscode.commands.executeCommand('kernelLsp.selectInterpreter') };
    const install: Action = { title: INSTALL_TITLE, run: () => vscode.commands.executeCommand('kernelLsp.installServer') };
    return [install, select];
  }

  private async offerUpdate(): Promise<void> {
    const installed = await this.own.version();
    if (installed === undefined || installed === this.own.wantedVersion || interpreterSetting().length > 0) {
      return;
    }
    const message = `The server is version ${installed}, this extension comes with ${this.own.wantedVersion}.`;
    void vscode.window.showInformationMessage(message, 'Update').then((chosen) => {
      if (chosen === 'Update') {
        void vscode.commands.executeCommand('kernelLsp.installServer');
      }
    });
  }
}

function missingInterpreter(search: Search): string {
  const [first] = search.rejected;
  const configured = interpreterSetting();
  if (configured.length > 0 && first !== undefined) {
    return `kernelLsp.interpreter is set to ${configured.join(' ')}: ${first.why}.`;
  }
  if (first === undefined) {
    return 'Kernel LSP found no Python; it needs 3.10 or newer.';
  }
  const best = search.rejected.find(({ canInstall }) => canInstall) ?? first;
  return `Kernel LSP found no Python with its server. ${best.command.join(' ')}: ${best.why}.`;
}

/** Reports, benchmarks and comparisons open as pages beside the source; anything else is left to the client. */
async function showReport(uri: string): Promise<{ success: boolean } | undefined> {
  const target = vscode.Uri.parse(uri);
  if (!PAGES.some((suffix) => path.basename(target.path).endsWith(suffix))) {
    return undefined;
  }
  try {
    await vscode.commands.executeCommand('markdown.showPreviewToSide', target);
    return { success: true };
  } catch {
    return undefined; // no Markdown preview in this editor: open the text
  }
}
