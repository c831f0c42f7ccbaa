// Which documents are the server's: CUDA by language, or C++ by language with a CUDA file name.
import * as vscode from 'vscode';

const SCHEMES = ['file', 'untitled'];

export const selector: { scheme: string; language: string; pattern?: string }[] = SCHEMES.flatMap((scheme) => [
  { scheme, language: 'cuda-cpp' },
  { scheme, language: 'cuda' },
  { scheme, language: 'cpp', pattern: '**/*.{cu,cuh}' },
]);

export function isCuda(document: vscode.TextDocument): boolean {
  return vscode.languages.match(selector, document) > 0;
}
