// Which kernels the cursor is in: the server's own code actions say so.
import * as vscode from 'vscode';

/** The code actions of a command at the cursor, one for each kernel there. */
export async function kernelsAtCursor(command: string): Promise<vscode.Command[]> {
  const editor = vscode.window.activeTextEditor;
  const actions =
    editor === undefined
      ? []
      : await vscode.commands.executeCommand<vscode.CodeAction[]>('vscode.executeCodeActionProvider', editor.document.uri, editor.selection);
  return actions.flatMap((action) => (action.command?.command === command ? [action.command] : []));
}
