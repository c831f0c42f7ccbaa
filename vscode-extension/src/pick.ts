// `kernelLsp/pick`: the server has the user pick one of several things.
import * as vscode from 'vscode';

export interface PickRequest {
  readonly title: string;
  readonly items: readonly { readonly label: string; readonly description: string; readonly detail: string }[];
}

/** The picked item's index; null where the user picked none. */
export async function pick({ title, items }: PickRequest, token: vscode.CancellationToken): Promise<{ index: number } | null> {
  const lines = items.map((item, index) => ({ ...item, index }));
  const chosen = await vscode.window.showQuickPick(lines, { title, matchOnDescription: true, matchOnDetail: true }, token);
  return chosen === undefined ? null : { index: chosen.index };
}
