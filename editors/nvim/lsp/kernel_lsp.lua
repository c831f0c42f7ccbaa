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

--- The code action "Open SASS of NAME" opens the instructions in a split; <CR> there goes to the source line.

local function open_sass(command, ctx)
  local client = assert(vim.lsp.get_client_by_id(ctx.client_id))
  local uri, kernel = unpack(command.arguments)
  client:request('kernelLsp/sass', { uri = uri, kernel = kernel }, function(err, sass)
    if err or not sass then
      return vim.notify(err and err.message or 'no instructions', vim.log.levels.WARN)
    end
    vim.cmd('vertical new')
    local buf = vim.api.nvim_get_current_buf()
    vim.bo[buf].buftype, vim.bo[buf].bufhidden, vim.bo[buf].swapfile = 'nofile', 'wipe', false
    vim.api.nvim_buf_set_name(buf, ('kernel-lsp-sass:%s (%d)'):format(sass.name or 'kernel', buf))
    vim.api.nvim_buf_set_lines(buf, 0, -1, false, vim.split(sass.text, '\n', { trimempty = true }))
    vim.bo[buf].modifiable, vim.bo[buf].filetype, vim.wo.wrap = false, 'asm', false
    local lines = {}
    for _, link in ipairs(sass.links) do lines[link.row] = link.lines[1] end
    vim.keymap.set('n', '<CR>', function()
      local place = lines[vim.api.nvim_win_get_cursor(0)[1] - 1]
      if not place then return end
      local at = { line = place.line, character = 0 }
      vim.cmd.wincmd('p')
      vim.lsp.util.show_document({ uri = place.uri, range = { start = at, ['end'] = at } }, 'utf-8', { focus = true })
    end, { buffer = buf, desc = 'Go to the source line' })
  end)
end

---@type vim.lsp.Config
return {
  cmd = { 'kernel-lsp' },
  filetypes = { 'cuda' },
  root_markers = { 'kernel-lsp.yaml', 'compile_commands.json', '.git' },
  init_options = { sassView = true },
  commands = { ['kernelLsp.openSass'] = open_sass },
}
