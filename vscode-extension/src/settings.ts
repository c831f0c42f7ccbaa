// What the extension itself reads of the section `kernelLsp`; everything else goes to the server as it is.
import * as vscode from 'vscode';

export const SECTION = 'kernelLsp';

/** The command that starts Python, empty when it is to be found. */
export function interpreterSetting(): string[] {
  const value = vscode.workspace.getConfiguration(SECTION).get<unknown>('interpreter');
  return Array.isArray(value) && value.every((word) => typeof word === 'string') ? value : [];
}

/** The whole section, for the server's initialization options. */
export function section(): unknown {
  return JSON.parse(JSON.stringify(vscode.workspace.getConfiguration().get(SECTION) ?? {}));
}

/** Writes a setting where it is set already, else for the user. */
export async function write(name: string, value: unknown): Promise<void> {
  const configuration = vscode.workspace.getConfiguration(SECTION);
  const set = configuration.inspect(name);
  const target =
    set?.workspaceFolderValue !== undefined || set?.workspaceValue !== undefined
      ? vscode.ConfigurationTarget.Workspace
      : vscode.ConfigurationTarget.Global;
  await configuration.update(name, value, target);
}

/** Settings that are read when the server starts; a change of another one reaches it while it runs. */
export function needsRestart(change: vscode.ConfigurationChangeEvent): boolean {
  return change.affectsConfiguration(`${SECTION}.interpreter`);
}
