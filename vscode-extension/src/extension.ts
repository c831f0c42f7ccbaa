// Wires the parts together. The server starts with the first CUDA document, not with the editor.
import * as fs from 'node:fs/promises';
import * as vscode from 'vscode';
import {
  chooseMeasurement,
  compareMeasurements,
  installServer,
  printDebugInformation,
  profileKernel,
  runBenchmark,
  selectGpu,
  selectInterpreter,
  writeBottleneckReport,
} from './commands';
import { isCuda } from './documents';
import { onInterpreterChange } from './interpreter';
import { forget, log, showLog, tell } from './log';
import { OwnEnvironment } from './ownEnvironment';
import { SassView } from './sassView';
import { Server } from './server';
import { needsRestart } from './settings';
import { Status } from './status';

let server: Server | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const storage = context.globalStorageUri.fsPath;
  await fs.mkdir(storage, { recursive: true });
  const own = new OwnEnvironment(context);
  const status = new Status();
  const running = (server = new Server(storage, own, status));
  const sass = new SassView(running);

  const command = (name: string, run: (...args: string[]) => unknown) =>
    vscode.commands.registerCommand(`kernelLsp.${name}`, async (...args: string[]) => {
      try {
        await run(...args);
      } catch (error) {
        forget(name);
        void tell(name, (error as Error).message, showLog);
      }
    });
  context.subscriptions.push(
    log,
    status,
    sass,
    command('restart', () => {
      ['interpreter', 'start', 'crashes'].forEach(forget);
      return running.restart();
    }),
    command('showLog', () => log.show()),
    command('printDebugInformation', () => printDebugInformation(context, running, status)),
    command('writeBottleneckReport', () => writeBottleneckReport(running)),
    command('openSass', (uri, kernel) => sass.open(uri, kernel)),
    command('chooseMeasurement', () => chooseMeasurement(running)),
    command('compareMeasurements', () => compareMeasurements(running)),
    command('profile', () => profileKernel(running)),
    command('runBenchmark', () => runBenchmark(running)),
    command('selectGpu', () => selectGpu(running, status)),
    command('selectInterpreter', selectInterpreter),
    command('installServer', () => installServer(context, running, own)),
  );

  void firstCudaDocument(context).then(() => startAndFollow(context, running));
}

export async function deactivate(): Promise<void> {
  await server?.stop();
}

/** Starts the server, and starts it anew when what it was started with changes. */
async function startAndFollow(context: vscode.ExtensionContext, running: Server): Promise<void> {
  context.subscriptions.push(
    vscode.workspace.onDidChangeConfiguration((change) => needsRestart(change) && running.restart()),
    vscode.workspace.onDidGrantWorkspaceTrust(() => running.restart()),
  );
  await running.restart();
  const subscription = await onInterpreterChange(() => void running.restart());
  if (subscription !== undefined) {
    context.subscriptions.push(subscription);
  }
}

/** Resolves when a CUDA document is open. */
function firstCudaDocument(context: vscode.ExtensionContext): Promise<void> {
  return new Promise((resolve) => {
    if (vscode.workspace.textDocuments.some(isCuda)) {
      resolve();
      return;
    }
    const waiting = vscode.workspace.onDidOpenTextDocument((document) => {
      if (isCuda(document)) {
        waiting.dispose();
        resolve();
      }
    });
    context.subscriptions.push(waiting);
  });
}
