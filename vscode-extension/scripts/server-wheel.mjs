// Builds the server's wheel into bundled/, so that the extension installs the server of its own version.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const extension = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const bundled = path.join(extension, 'bundled');
rmSync(bundled, { recursive: true, force: true });
mkdirSync(bundled);
const python = process.env.PYTHON ?? 'python3';
execFileSync(
  python,
  ['-m', 'pip', 'wheel', '--quiet', '--disable-pip-version-check', '--no-deps', '--wheel-dir', bundled, path.dirname(extension)],
  { stdio: ['ignore', 'inherit', 'inherit'] },
);
console.log(`bundled/${readdirSync(bundled).join(', ')}`);
