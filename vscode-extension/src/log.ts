// The extension's one output channel, and toasts: each cause is said once until it has gone away.
import * as vscode from 'vscode';
import { MessageType, type ShowMessageParams } from 'vscode-languageclient/node';

export const log = vscode.window.createOutputChannel('Kernel LSP', { log: true });

export interface Action {
  readonly title: string;
  readonly run: () => unknown;
}

export const showLog: Action = { title: 'Show log', run: () => log.show() };

const said = new Set<string>();

/** Shows an error with its ways out as buttons. The same cause is not shown again before `forget(cause)`. */
export async function tell(cause: string, message: string, ...actions: Action[]): Promise<void> {
  log.error(message);
  if (said.has(cause)) {
    return;
  }
  said.add(cause);
  const chosen = await vscode.window.showErrorMessage(message, ...actions.map((action) => action.title));
  await actions.find((action) => action.title === chosen)?.run();
}

/** Lets a cause be said again, because the user acted or it has gone. */
export function forget(cause: string): void {
  said.delete(cause);
}

const SETTING = /\bkernelLsp(?:\.[A-Za-z]+)+/;

/** Shows a message of the server. With a button VS Code shows it in full; it opens what helps with the cause. */
export async function pass({ type, message }: ShowMessageParams): Promise<void> {
  const [setting] = SETTING.exec(message) ?? [];
  const place = vscode.workspace.workspaceFolders === undefined ? 'openSettings' : 'openWorkspaceSettings';
  const openSettings = {
    title: 'Open settings',
    run: () => vscode.commands.executeCommand(`workbench.action.${place}`, { query: setting }),
  };
  if (type !== MessageType.Error && type !== MessageType.Warning) {
    void vscode.window.showInformationMessage(message);
    return;
  }
  const action = setting === undefined ? showLog : openSettings;
  const show = type === MessageType.Error ? vscode.window.showErrorMessage : vscode.window.showWarningMessage;
  if ((await show(message, action.title)) !== undefined) {
    await action.run();
  }
}
