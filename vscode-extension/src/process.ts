// Runs a program to its end and gives its output. No shell, never in a folder of the workspace.
import { spawn } from 'node:child_process';
import * as vscode from 'vscode';

export class ProcessError extends Error {}

export interface RunOptions {
  readonly cwd: string;
  readonly timeoutMs?: number;
  readonly token?: vscode.CancellationToken;
  /** Called with each chunk of stdout and stderr as it comes. */
  readonly onOutput?: (text: string) => void;
}

/** stdout of the command; rejects with what it said last when it fails, cannot be started or takes too long. */
export function run(command: readonly string[], options: RunOptions): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command[0], command.slice(1), {
      cwd: options.cwd,
      env: environment(),
      stdio: ['ignore', 'pipe', 'pipe'],
      windowsHide: true,
    });
    let stdout = '';
    let stderr = '';
    let ended = '';
    const end = (why: string) => {
      ended = why;
      child.kill('SIGKILL');
    };
    const timer = options.timeoutMs ? setTimeout(() => end('no answer in time'), options.timeoutMs) : undefined;
    const cancel = options.token?.onCancellationRequested(() => end('cancelled'));
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
      options.onOutput?.(text);
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
      options.onOutput?.(text);
    });
    const settle = (why: string | undefined) => {
      clearTimeout(timer);
      cancel?.dispose();
      if (why === undefined) {
        resolve(stdout);
      } else {
        reject(new ProcessError(why));
      }
    };
    child.on('error', (error: NodeJS.ErrnoException) =>
      settle(error.code === 'ENOENT' ? 'there is no such program' : error.message),
    );
    child.on('close', (code) => {
      if (ended) {
        settle(ended);
      } else {
        settle(code === 0 ? undefined : lastLine(stderr) || lastLine(stdout) || `it ended with status ${code}`);
      }
    });
  });
}

/** The environment of every Python: UTF-8, and no import from the folder that it is started in. */
export function environment(): NodeJS.ProcessEnv {
  return { ...process.env, PYTHONUTF8: '1', PYTHONSAFEPATH: '1' };
}

function lastLine(text: string): string {
  return text.trim().split('\n').pop()?.trim() ?? '';
}
