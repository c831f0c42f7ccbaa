// The extension's own Python environment: made on the user's word, from the server's wheel that the extension carries
// and NVIDIA's compiler from PyPI. A file written last, with the version in it, says that it is complete.
import * as fs from 'node:fs/promises';
import * as path from 'node:path';
import * as vscode from 'vscode';
import { forget, log, showLog, tell } from './log';
import { run } from './process';

export const INSTALL_TITLE = 'Install the server (350 MB)';

export class OwnEnvironment {
  private readonly folder: string;
  private readonly marker: string;

  constructor(private readonly context: vscode.ExtensionContext) {
    this.folder = path.join(context.globalStorageUri.fsPath, 'environment');
    this.marker = path.join(this.folder, 'kernel-lsp-version');
  }

  /** The Python of the environment, undefined where it is not installed. */
  async python(): Promise<string | undefined> {
    return (await this.version()) === undefined ? undefined : this.pythonPath();
  }

  /** Version of the server in it, undefined where it is not installed. */
  async version(): Promise<string | undefined> {
    return fs.readFile(this.marker, 'utf8').catch(() => undefined);
  }

  get wantedVersion(): string {
    return this.context.extension.packageJSON.version;
  }

  /** Makes the environment with the given Python; says so and returns false when that failed or was cancelled. */
  async install(basePython: readonly string[]): Promise<boolean> {
    forget('install');
    return vscode.window.withProgress(
      { location: vscode.ProgressLocation.Notification, title: 'Installing the Kernel LSP server', cancellable: true },
      async (progress, token) => {
        const options = { cwd: this.context.globalStorageUri.fsPath, token, onOutput: logLines };
        try {
          const wheel = await this.wheel();
          await fs.rm(this.marker, { force: true });
          progress.report({ message: 'making an environment' });
          await run([...basePython, '-m', 'venv', '--clear', this.folder], options);
          progress.report({ message: "downloading the server and NVIDIA's compiler" });
          const pip = [this.pythonPath(), '-m', 'pip', 'install', '--disable-pip-version-check', '--no-input'];
          await run([...pip, `${wheel}[cuda]`], options);
          await fs.writeFile(this.marker, this.wantedVersion);
          log.info(`installed the server ${this.wantedVersion} into ${this.folder}`);
          return true;
        } catch (error) {
          await fs.rm(this.folder, { recursive: true, force: true });
          if (!token.isCancellationRequested) {
            void tell('install', `The server was not installed: ${(error as Error).message}`, showLog);
          }
          return false;
        }
      },
    );
  }

  private pythonPath(): string {
    return process.platform === 'win32'
      ? path.join(this.folder, 'Scripts', 'python.exe')
      : path.join(this.folder, 'bin', 'python');
  }

  private async wheel(): Promise<string> {
    const bundled = this.context.asAbsolutePath('bundled');
    const wheel = (await fs.readdir(bundled)).find((name) => name.endsWith('.whl'));
    if (wheel === undefined) {
      throw new Error(`there is no wheel in ${bundled}`);
    }
    return path.join(bundled, wheel);
  }
}

function logLines(text: string): void {
  text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .forEach((line) => log.info(`[install] ${line.trimEnd()}`));
}
