---@brief
---
--- https://github.com/kernel-lsp/kernel-lsp
---
--- Shows on the source lines what limits a CUDA kernel: occupancy, registers, spills, shared memory.
---
--- Install the server, with NVIDIA's compiler, so that `kernel-lsp` is on PATH:
---
--- ```sh
--- pipx install 'kernel-lsp[cuda]'
--- ```

---@type vim.lsp.Config
return {
  cmd = { 'kernel-lsp' },
  filetypes = { 'cuda' },
  root_markers = { 'kernel-lsp.yaml', 'compile_commands.json', '.git' },
}
