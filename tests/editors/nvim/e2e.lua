-- Drives a real Neovim through one session with the server and reports each step as one line of JSON on stdout:
-- {"step": ..., "ok": ..., "detail": ...}. The expectations come as JSON in the file named by the first argument:
--   file       the .cu file that is opened; it is edited
--   settings   the section kernelLsp
--   findings   [{code, line, message}], what `kernel-lsp check` says of the file
--   kernel     {name, line, column}: whose name is hovered (1-based)
--   slow       a file; while it exists each build takes over a second
--   reports    {new, old}: pages of ncu that hold the kernel, its mangled name, and how far below it the samples are
--   server     the command that starts the server

local plan = vim.json.decode(table.concat(vim.fn.readfile(arg[1]), '\n'))
local report_path = plan.file .. '.bottleneck.md'

local function step(name, ok, detail)
  io.stdout:write(vim.json.encode({ step = name, ok = ok and true or false, detail = vim.inspect(detail) }) .. '\n')
end
local function wait(condition, seconds) return (vim.wait((seconds or 60) * 1000, condition, 20)) end

local progress = {}
vim.api.nvim_create_autocmd('LspProgress', {
  callback = function(ev) table.insert(progress, ev.data.params.value) end,
})
local messages = {}
vim.notify = function(text) table.insert(messages, text) end

vim.cmd('filetype on')
vim.lsp.config('kernel_lsp', { cmd = plan.server, settings = { kernelLsp = plan.settings } })
vim.lsp.enable('kernel_lsp')
vim.cmd.edit(vim.fn.fnameescape(plan.file))
local buf = vim.api.nvim_get_current_buf()
step('filetype', vim.bo.filetype == 'cuda', vim.bo.filetype)

local function the_client() return vim.lsp.get_clients({ bufnr = buf, name = 'kernel_lsp' })[1] end
step('attached', wait(function() local c = the_client() return c and c.initialized end), messages)
local client = assert(the_client())
local pid = nil
for _, child in ipairs(vim.api.nvim_get_proc_children(vim.fn.getpid())) do pid = pid or child end
step('server name', client.server_info and client.server_info.name == 'kernel-lsp', client.server_info)
step('root', client.root_dir == vim.fs.dirname(plan.file), client.root_dir)

-- Diagnostics: exactly the findings of the command line, on the same lines.
local function shown()
  local list = {}
  for _, d in ipairs(vim.diagnostic.get(buf)) do table.insert(list, ('%s %d %s'):format(d.code, d.lnum + 1, d.source)) end
  table.sort(list)
  return list
end
local expected = {}
for _, f in ipairs(plan.findings) do table.insert(expected, ('%s %d kernel-lsp'):format(f.code, f.line)) end
table.sort(expected)
step('diagnostics', wait(function() return vim.deep_equal(shown(), expected) end), { shown = shown(), expected = expected })
local first = plan.findings[1]
local text = ''
for _, d in ipairs(vim.diagnostic.get(buf)) do if d.code == first.code then text = d.message end end
step('diagnostic message', text:find(first.message, 1, true), { text, first.message })

-- Hover: the floating window that K opens.
local function float_text()
  for _, w in ipairs(vim.api.nvim_list_wins()) do
    if vim.api.nvim_win_get_config(w).relative ~= '' then
      return table.concat(vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(w), 0, -1, false), '\n')
    end
  end
  return ''
end
vim.api.nvim_win_set_cursor(0, { plan.kernel.line, plan.kernel.column })
vim.lsp.buf.hover()
step('hover', wait(function() return float_text():find(plan.kernel.name, 1, true) and float_text():find('registers', 1, true) end, 5), float_text())
vim.cmd('fclose!')

-- Code lens: what is drawn, as the README's snippet asks for it.
local function lenses()
  vim.lsp.codelens.refresh({ bufnr = buf })
  return vim.tbl_map(function(l) return { l.range.start.line + 1, l.command.title } end, vim.lsp.codelens.get(buf))
end
local function kernel_lens()
  for _, l in ipairs(lenses()) do if l[1] == plan.kernel.line then return l[2] end end
  return ''
end
step('code lens', wait(function() return kernel_lens():find('blocks?/SM') end, 5), lenses())

-- A save builds again, and a build of over a second shows progress.
vim.fn.writefile({}, plan.slow)
progress = {}
vim.api.nvim_buf_set_lines(buf, 0, 0, false, { '// one line more above the kernel' })
vim.cmd('silent write')
plan.kernel.line = plan.kernel.line + 1
local function kinds() return vim.tbl_map(function(v) return v.kind end, progress) end
step('progress', wait(function() return kinds()[1] == 'begin' and kinds()[#progress] == 'end' end), progress)
for _, f in ipairs(plan.findings) do f.line = f.line + 1 end
expected = {}
for _, f in ipairs(plan.findings) do table.insert(expected, ('%s %d kernel-lsp'):format(f.code, f.line)) end
table.sort(expected)
step('diagnostics after the save', wait(function() return vim.deep_equal(shown(), expected) end), { shown = shown(), expected = expected })
vim.fn.delete(plan.slow)

-- A compile error shows on its line, the old numbers stay and say so; the fix clears it.
local function errors()
  return vim.tbl_map(function(d) return { d.lnum + 1, d.code, d.message } end,
    vim.diagnostic.get(buf, { severity = vim.diagnostic.severity.ERROR }))
end
local last = vim.api.nvim_buf_line_count(buf)
vim.api.nvim_buf_set_lines(buf, -1, -1, false, { '__global__ void broken() { no_such_name = 1; }' })
vim.cmd('silent write')
step('error on its line', wait(function() return (errors()[1] or {})[1] == last + 1 end), errors())
step('lens kept and marked', wait(function() return kernel_lens():find('before the failed build', 1, true) end, 5), lenses())
vim.api.nvim_buf_set_lines(buf, last, -1, false, {})
vim.cmd('silent write')
step('error cleared', wait(function() return #errors() == 0 and vim.deep_equal(shown(), expected) end), shown())
step('lens fresh again', wait(function() local t = kernel_lens() return t ~= '' and not t:find('before the failed', 1, true) end, 5), lenses())

-- The instructions open in a split, and <CR> on a row goes to its source line.
local function sass()
  local found = client:request_sync('kernelLsp/sass', { uri = vim.uri_from_bufnr(buf) }, 5000, buf)
  return found and found.result or {}
end
wait(function() return vim.startswith(sass().text or '', '// ' .. plan.kernel.name) end) -- of this text, read to the end
vim.api.nvim_win_set_cursor(0, { plan.kernel.line, plan.kernel.column })
vim.lsp.buf.code_action({ apply = true, filter = function(a) return a.title == 'Open SASS of ' .. plan.kernel.name end })
local function in_view() return vim.startswith(vim.fn.fnamemodify(vim.api.nvim_buf_get_name(0), ':t'), 'kernel-lsp-sass:') end
wait(in_view, 10)
local rows = vim.api.nvim_buf_get_lines(0, 0, -1, false)
local row, source_line
for number, found in ipairs(rows) do
  source_line = tonumber(found:match('%sl%.(%d+)$'))
  if source_line then row = number break end
end
step('SASS view', in_view() and vim.startswith(rows[1], '// ' .. plan.kernel.name) and row and not vim.bo.modifiable, vim.list_slice(rows, 1, 8))
vim.api.nvim_win_set_cursor(0, { row or 1, 0 })
vim.api.nvim_feedkeys(vim.keycode('<CR>'), 'x', false)
step('SASS to source', wait(function()
  return vim.api.nvim_get_current_buf() == buf and vim.api.nvim_win_get_cursor(0)[1] == source_line
end, 5), { vim.api.nvim_buf_get_name(0), vim.api.nvim_win_get_cursor(0), source_line })
vim.cmd.only()

-- The code action writes the report beside the source and shows it.
vim.api.nvim_win_set_cursor(0, { plan.kernel.line, plan.kernel.column })
vim.lsp.buf.code_action({ apply = true, filter = function(a) return a.title == 'Write bottleneck report of ' .. plan.kernel.name end })
local function on_disk() return vim.uv.fs_stat(report_path) and table.concat(vim.fn.readfile(report_path), '\n') or '' end
step('report on disk', wait(function() return on_disk():find(plan.kernel.name, 1, true) end, 10), on_disk():sub(1, 300))
step('report shown', wait(function() return vim.api.nvim_buf_get_name(0) == report_path end, 5), vim.api.nvim_buf_get_name(0))
step('report not modified', not vim.bo.modified, vim.bo.modified)

-- The same from the lens.
vim.fn.delete(report_path)
vim.api.nvim_set_current_buf(buf)
wait(function() return kernel_lens() ~= '' end, 5)
vim.api.nvim_win_set_cursor(0, { plan.kernel.line, 0 })
vim.lsp.codelens.run()
step('report from the lens', wait(function() return on_disk() ~= '' end, 10), on_disk():sub(1, 300))

-- Reports: the newest is shown, another can be chosen from a list.
local function lens_with(words)
  return wait(function()
    for _, l in ipairs(lenses()) do if l[1] == plan.kernel.line and l[2]:find(words, 1, true) then return true end end
  end, 20)
end
client.settings.kernelLsp.reports = { paths = { plan.reports.new, plan.reports.old } }
client:notify('workspace/didChangeConfiguration', { settings = client.settings })
step('measured', lens_with('measured · 1 h old'), lenses())
local hot = plan.kernel.line + plan.reports.below
vim.api.nvim_set_current_buf(buf)
vim.lsp.inlay_hint.enable(true, { bufnr = buf })
local function hints()
  return vim.tbl_map(function(h) return { h.inlay_hint.position.line + 1, h.inlay_hint.label } end, vim.lsp.inlay_hint.get({ bufnr = buf }))
end
step('hot line', wait(function()
  return vim.iter(hints()):any(function(h) return h[1] == hot and h[2]:find('% stalls: long scoreboard', 1, true) end)
end), hints())
vim.api.nvim_win_set_cursor(0, { hot, 8 })
vim.lsp.buf.hover()
step('stalls in the hover', wait(function()
  local t = float_text()
  return t:find('stall samples (measured', 1, true) and t:find('long scoreboard%s+80 %%%s+####')
end), float_text())
vim.cmd('fclose!')
local offered = {}
vim.ui.select = function(items, opts, on_choice)
  offered = vim.tbl_map(opts.format_item or tostring, items)
  for number, item in ipairs(items) do
    if vim.startswith(offered[number], vim.fs.basename(plan.reports.old)) then return on_choice(item, number) end
  end
  on_choice(nil)
end
client:exec_cmd({ title = '', command = 'kernelLsp.chooseReport', arguments = { vim.uri_from_bufnr(buf), plan.reports.kernel } }, { bufnr = buf })
step('report chosen', lens_with('measured · 2 h old') and #offered == 3, { offered, lenses() })

-- A stop ends the process.
client:stop()
step('stopped', wait(function() return client:is_stopped() end, 10), messages)
step('no process left', pid and wait(function() return vim.uv.kill(pid, 0) ~= 0 end, 10), pid)
step('nothing said', #messages == 0, messages)
vim.cmd('silent! %bwipeout!')
os.exit(0)
