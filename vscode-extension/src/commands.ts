// The palette's commands that ask the server or the user something.
import * as os from 'node:os';
import * as vscode from 'vscode';
import { isCuda } from './documents';
import { findBasePython } from './interpreter';
import { kernelsAtCursor } from './kernelsAtCursor';
import { forget, log, showLog, tell } from './log';
import type { OwnEnvironment } from './ownEnvironment';
import { run } from './process';
import type { Server } from './server';
import { interpreterSetting, section, write } from './settings';
import type { Status } from './status';

const PROFILE = 'kernelLsp.profileKernel';

/** One GPU that the server has a profile of, as `kernelLsp/gpus` gives it. */
interface Gpu {
  readonly name: string;
  readonly arch: string;
}

/** Lets the user pick one of the server's GPUs and writes it to `kernelLsp.gpu`. */
export async function selectGpu(server: Server, status: Status): Promise<void> {
  const client = server.running;
  if (client === undefined) {
    return notRunning();
  }
  const gpus = await client.sendRequest<Gpu[]>('kernelLsp/gpus', {});
  const shown = status.activeGpu;
  const items = [
    { label: 'Automatic', description: "this machine's GPU, else the build flags' architecture", gpu: '' },
    ...gpus.map(({ name, arch }) => ({
      label: name,
      description: name === shown ? `${arch} · shown now` : arch,
      gpu: name,
    })),
  ];
  const chosen = await vscode.window.showQuickPick(items, {
    title: 'GPU whose limits and peaks are shown',
    matchOnDescription: true,
  });
  if (chosen !== undefined) {
    await write('gpu', chosen.gpu === '' ? undefined : chosen.gpu);
  }
}

/** Has the server write the report of the active file. */
export async function writeBottleneckReport(server: Server): Promise<void> {
  await execute(server, 'kernelLsp.writeReport', 'the report is about its kernels');
}

/** Has the server run the benchmark command for the active file. */
export async function runBenchmark(server: Server): Promise<void> {
  await execute(server, 'kernelLsp.benchmark', 'the benchmark belongs to it');
}

/** Profiles the kernel at the cursor: the server's own code actions say which those are. */
export async function profileKernel(server: Server): Promise<void> {
  const profiles = await kernelsAtCursor(PROFILE);
  const chosen =
    profiles.length < 2
      ? profiles[0]
      : await vscode.window.showQuickPick(
          profiles.map((command) => ({ label: command.title, ...command })),
          { title: 'Kernel to profile' },
        );
  if (chosen !== undefined) {
    await vscode.commands.executeCommand(PROFILE, ...(chosen.arguments ?? []));
  } else if (profiles.length === 0) {
    await execute(server, PROFILE, 'its kernels can be profiled'); // the server says what is in the way
  }
}

/** Has the server ask which measured launch of the kernel at the cursor is shown. */
export async function chooseMeasurement(server: Server): Promise<void> {
  await executeAtCursor(server, 'kernelLsp.chooseReport');
}

/** Has the server compare two measured launches of the kernel at the cursor. */
export async function compareMeasurements(server: Server): Promise<void> {
  await executeAtCursor(server, 'kernelLsp.compareReports');
}

/** Runs one of the server's commands for the kernel at the cursor; where that is none or many, the server asks which. */
async function executeAtCursor(server: Server, command: string): Promise<void> {
  const found = await kernelsAtCursor(command);
  if (found.length === 1) {
    await vscode.commands.executeCommand(command, ...(found[0].arguments ?? []));
  } else {
    await execute(server, command, 'measurements are of its kernels');
  }
}

/** Runs one of the server's commands for the active file. */
async function execute(server: Server, command: string, why: string): Promise<void> {
  const document = vscode.window.activeTextEditor?.document;
  if (document === undefined || !isCuda(document)) {
    void vscode.window.showInformationMessage(`Open a .cu or .cuh file first: ${why}.`);
    return;
  }
  const client = server.running;
  if (client === undefined) {
    return notRunning();
  }
  const uri = client.code2ProtocolConverter.asUri(document.uri);
  await client.sendRequest('workspace/executeCommand', { command, arguments: [uri, null] });
}

/** Lets the user pick a Python and writes it to `kernelLsp.interpreter`; the change restarts the server. */
export async function selectInterpreter(): Promise<void> {
  const [file] =
    (await vscode.window.showOpenDialog({
      title: 'Python (3.10 or newer) in which kernel-lsp is installed',
      openLabel: 'Use this Python',
    })) ?? [];
  if (file !== undefined) {
    forget('interpreter');
    await write('interpreter', [file.fsPath]);
  }
}

/** Makes the extension's own environment and starts the server from it. */
export async function installServer(context: vscode.ExtensionContext, server: Server, own: OwnEnvironment): Promise<void> {
  forget('interpreter');
  const base = await findBasePython(context.globalStorageUri.fsPath);
  if (base === undefined) {
    return tell('interpreter', 'The server needs Python 3.10 or newer, and none was found. Install Python, then try again.', showLog);
  }
  if (!(await own.install(base.command))) {
    return;
  }
  if (interpreterSetting().length > 0) {
    // It would keep the new environment from being used; its removal restarts the server.
    await vscode.workspace.getConfiguration('kernelLsp').update('interpreter', undefined, vscode.ConfigurationTarget.Global);
  } else {
    await server.restart();
  }
}

/** Writes what a bug report needs to the log and shows it. */
export async function printDebugInformation(context: vscode.ExtensionContext, server: Server, status: Status): Promise<void> {
  const client = server.running;
  const facts = {
    extension: context.extension.packageJSON.version,
    editor: `${vscode.env.appName} ${vscode.version}`,
    system: `${os.type()} ${os.release()} ${os.arch()}`,
    trusted: vscode.workspace.isTrusted,
    interpreter: server.lastSearch.found ?? null,
    rejected: server.lastSearch.rejected,
    server: client?.initializeResult?.serverInfo ?? null,
    status: status.snapshot(),
    settings: section(),
  };
  log.info(`debug information\n${JSON.stringify(facts, undefined, 2)}`);
  log.show();
  const interpreter = server.lastSearch.found;
  if (interpreter !== undefined) {
    const cwd = context.globalStorageUri.fsPath;
    const doctor = run([...interpreter.command, '-m', 'kernel_lsp', 'doctor'], { cwd, timeoutMs: 60_000 });
    log.info(`kernel-lsp doctor\n${await doctor.catch((error: Error) => `failed: ${error.message}`)}`);
  }
}

function notRunning(): void {
  void tell('not running', 'The Kernel LSP server is not running.', showLog);
  forget('not running');
}
