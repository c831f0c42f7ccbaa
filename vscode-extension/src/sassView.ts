// A kernel's instructions as a read-only document beside the source: the scheme kernel-lsp-sass.
// The cursor in one of the two marks what belongs to it in the other.
import * as vscode from 'vscode';
import { isCuda } from './documents';
import { kernelsAtCursor } from './kernelsAtCursor';
import type { Server } from './server';

const SCHEME = 'kernel-lsp-sass';
const OPEN = 'kernelLsp.openSass';

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
  private readonly marked = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new vscode.ThemeColor('editor.findMatchHighlightBackground'),
    overviewRulerColor: new vscode.ThemeColor('editorOverviewRuler.findMatchForeground'),
  });
  private readonly links = new Map<string, Sass['links']>();
  private readonly subscriptions: vscode.Disposable[];
  readonly onDidChange = this.changed.event;

  constructor(private readonly server: Server) {
    server.onInstructions((uri) => this.refresh(uri));
    this.subscriptions = [
      this.changed,
      this.marked,
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => this.follow(textEditor)),
      vscode.window.onDidChangeVisibleTextEditors(() => this.followActive()),
      vscode.workspace.onDidChangeTextDocument(({ document }) => document.uri.scheme === SCHEME && this.followActive()),
      vscode.workspace.onDidCloseTextDocument(({ uri }) => this.links.delete(uri.toString())),
    ];
  }

  dispose(): void {
    this.subscriptions.forEach((subscription) => subscription.dispose());
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const sass = await this.ask(asked(uri));
    this.links.set(uri.toString(), sass?.links ?? []);
    return sass?.text ?? '// The Kernel LSP server is not running.\n';
  }

  /** Opens a kernel's instructions; without one, those of the kernel at the cursor, or of one that the user picks. */
  async open(uri?: string, kernel?: string): Promise<void> {
    const active = vscode.window.activeTextEditor?.document;
    const client = this.server.running;
    const of = uri ?? (active && isCuda(active) ? client?.code2ProtocolConverter.asUri(active.uri) : undefined);
    if (of === undefined) {
      void vscode.window.showInformationMessage('Open a .cu or .cuh file first: the instructions are of its kernels.');
      return;
    }
    const chosen = kernel ?? (await this.pick(of));
    if (chosen === undefined) {
      return;
    }
    const sass = await this.ask({ uri: of, kernel: chosen });
    const path = `/${sass?.name ?? 'kernel'} (SASS)`; // the name that makes it the language cuda-sass
    const document = await vscode.workspace.openTextDocument(
      vscode.Uri.from({ scheme: SCHEME, path, query: JSON.stringify({ uri: of, kernel: chosen }) }),
    );
    await vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true, preview: true });
    this.followActive();
  }

  private async pick(uri: string): Promise<string | undefined> {
    const here = (await kernelsAtCursor(OPEN)).map(({ arguments: [, kernel] = [] }) => String(kernel));
    if (here.length === 1) {
      return here[0];
    }
    const sass = await this.ask({ uri, kernel: null });
    const kernels = (sass?.kernels ?? []).filter(({ kernel }) => here.length === 0 || here.includes(kernel));
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
      if (document.uri.scheme === SCHEME && asked(document.uri).uri === uri) {
        this.changed.fire(document.uri);
      }
    }
  }

  private followActive(): void {
    if (vscode.window.activeTextEditor !== undefined) {
      this.follow(vscode.window.activeTextEditor);
    }
  }

  /** The cursor has moved in an editor. */
  private follow(editor: vscode.TextEditor): void {
    if (editor.document.uri.scheme === SCHEME) {
      this.markLines(editor);
    } else {
      editor.setDecorations(this.marked, []);
      this.markRows(editor);
    }
  }

  /** Marks the rows of the source line at the cursor in the views of that source. */
  private markRows(source: vscode.TextEditor): void {
    const uri = this.uriOf(source);
    const line = source.selection.active.line;
    for (const view of vscode.window.visibleTextEditors) {
      if (view.document.uri.scheme === SCHEME && asked(view.document.uri).uri === uri) {
        const here = this.linksOf(view).filter(({ lines }) => lines.some((place) => place.uri === uri && place.line === line));
        this.mark(view, here.map(({ row }) => row));
      }
    }
  }

  /** Marks the lines of the row at the cursor, those of its callers too, in the sources that are in sight. */
  private markLines(view: vscode.TextEditor): void {
    const here = this.linksOf(view).find(({ row }) => row === view.selection.active.line);
    for (const source of vscode.window.visibleTextEditors) {
      if (source.document.uri.scheme !== SCHEME) {
        const uri = this.uriOf(source);
        this.mark(source, (here?.lines ?? []).filter((place) => place.uri === uri).map(({ line }) => line));
      }
    }
  }

  /** Marks lines of an editor, and brings the first into sight where none is. */
  private mark(editor: vscode.TextEditor, lines: readonly number[]): void {
    const ranges = lines.map((line) => new vscode.Range(line, 0, line, 0));
    editor.setDecorations(this.marked, ranges);
    if (ranges.length > 0 && !ranges.some((range) => editor.visibleRanges.some((visible) => visible.contains(range)))) {
      editor.revealRange(ranges[0], vscode.TextEditorRevealType.InCenter);
    }
  }

  private linksOf(view: vscode.TextEditor): Sass['links'] {
    return this.links.get(view.document.uri.toString()) ?? [];
  }

  private uriOf(source: vscode.TextEditor): string | undefined {
    return this.server.running?.code2ProtocolConverter.asUri(source.document.uri);
  }
}

/** What a view's URI asks for. */
function asked(uri: vscode.Uri): Asked {
  return JSON.parse(uri.query) as Asked;
}
