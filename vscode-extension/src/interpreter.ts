// Finds the program that starts the server: the setting, the extension's own environment, the Python extension's
// interpreter, then PATH. Each candidate is asked for its versions before it is used.
import * as fs from 'node:fs';
import * as path from 'node:path';
import * as vscode from 'vscode';
import { run } from './process';
import { interpreterSetting } from './settings';

export const OLDEST_PYTHON = [3, 10] as const;

/** A command that starts Python, and where it comes from. */
export interface Candidate {
  readonly command: readonly string[];
  readonly from: string;
}

export interface Interpreter extends Candidate {
  readonly python: string;
  /** Version of the kernel-lsp that is installed in it. */
  readonly server: string;
}

export interface Rejected extends Candidate {
  readonly why: string;
  /** It could make the extension's own environment. */
  readonly canInstall: boolean;
}

export interface Search {
  readonly found?: Interpreter;
  readonly rejected: readonly Rejected[];
}

const PROBE = `
import json, sys
try:
    from importlib.metadata import version
    server = version("kernel-lsp")
except Exception:
    server = None
print(json.dumps({"python": list(sys.version_info[:3]), "server": server}))
`;

/** Tries the candidates in order; `cwd` is a folder that no workspace can write to. */
export async function findInterpreter(ownPython: string | undefined, cwd: string): Promise<Search> {
  const configured = interpreterSetting();
  const candidates =
    configured.length > 0
      ? [{ command: configured, from: 'kernelLsp.interpreter' }]
      : [...(ownPython ? [{ command: [ownPython], from: "the extension's own environment" }] : []), ...(await machinePythons())];
  const rejected: Rejected[] = [];
  for (const candidate of candidates) {
    const result = await probe(candidate, cwd);
    if ('server' in result) {
      return { found: result, rejected };
    }
    rejected.push(result);
  }
  return { rejected };
}

/** The first Python that is new enough to make an environment with, whatever is set. */
export async function findBasePython(cwd: string): Promise<Candidate | undefined> {
  for (const candidate of await machinePythons()) {
    const result = await probe(candidate, cwd);
    if ('server' in result || result.canInstall) {
      return result;
    }
  }
  return undefined;
}

/** The Python extension's interpreter, then the first `python3` and the first `python` of PATH. */
async function machinePythons(): Promise<Candidate[]> {
  const active = await pythonExtensionInterpreter();
  const list: Candidate[] = [
    ...(active === undefined ? [] : [{ command: [active], from: 'the Python extension' }]),
    ...onPath(['python3', 'python']).map((program) => ({ command: [program], from: 'PATH' })),
  ];
  const seen = new Set<string>();
  return list.filter(({ command }) => !seen.has(command[0]) && seen.add(command[0]));
}

async function probe(candidate: Candidate, cwd: string): Promise<Interpreter | Rejected> {
  let answer: { python: number[]; server: string | null };
  try {
    answer = JSON.parse(await run([...candidate.command, '-c', PROBE], { cwd, timeoutMs: 20_000 }));
  } catch (error) {
    return { ...candidate, why: (error as Error).message, canInstall: false };
  }
  const python = answer.python.join('.');
  const [major, minor] = answer.python;
  if (major !== OLDEST_PYTHON[0] || minor < OLDEST_PYTHON[1]) {
    return { ...candidate, why: `it is Python ${python}, ${OLDEST_PYTHON.join('.')} or newer is needed`, canInstall: false };
  }
  if (answer.server === null) {
    return { ...candidate, why: `kernel-lsp is not installed in it (Python ${python})`, canInstall: true };
  }
  return { ...candidate, python, server: answer.server };
}

/** The part of the Python extension's public interface that is used. */
interface PythonExtension {
  readonly environments?: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { readonly path: string };
    resolveEnvironment(
      environment: { readonly path: string },
    ): Promise<{ readonly executable: { readonly uri?: vscode.Uri } } | undefined>;
    readonly onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
  };
}

async function pythonExtension(): Promise<PythonExtension['environments']> {
  // Its interpreter may be one that lies in the workspace.
  if (!vscode.workspace.isTrusted) {
    return undefined;
  }
  const extension = vscode.extensions.getExtension<PythonExtension>('ms-python.python');
  return (await extension?.activate())?.environments;
}

async function pythonExtensionInterpreter(): Promise<string | undefined> {
  try {
    const environments = await pythonExtension();
    const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
    const active = environments?.getActiveEnvironmentPath(folder);
    return active && (await environments?.resolveEnvironment(active))?.executable.uri?.fsPath;
  } catch {
    return undefined; // another extension's fault is no reason not to look further
  }
}

/** Calls back when another interpreter is chosen in the Python extension. */
export async function onInterpreterChange(changed: () => void): Promise<vscode.Disposable | undefined> {
  try {
    return (await pythonExtension())?.onDidChangeActiveEnvironmentPath(changed);
  } catch {
    return undefined;
  }
}

/** The first file of each name in PATH. Relative entries are left out, and so is an untrusted workspace's folder. */
function onPath(names: readonly string[]): string[] {
  const suffix = process.platform === 'win32' ? '.exe' : '';
  const forbidden = vscode.workspace.isTrusted
    ? []
    : (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath + path.sep);
  const folders = (process.env.PATH ?? '')
    .split(path.delimiter)
    .filter((folder) => path.isAbsolute(folder) && !forbidden.some((root) => (folder + path.sep).startsWith(root)));
  return names.flatMap((name) => {
    const file = folders.map((folder) => path.join(folder, name + suffix)).find((file) => fs.existsSync(file));
    return file === undefined ? [] : [file];
  });
}
