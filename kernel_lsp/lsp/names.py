"""Names of our own in the protocol: commands, requests, notifications."""

WRITE_REPORT = "kernelLsp.writeReport"
PROFILE = "kernelLsp.profileKernel"
BENCHMARK = "kernelLsp.benchmark"
REBUILD = "kernelLsp.rebuild"
GPUS = "kernelLsp/gpus"
STATUS = "kernelLsp/status"
SASS = "kernelLsp/sass"
OPEN_SASS = "kernelLsp.openSass"  # run by the editor, where it said that it can
CHOOSE_REPORT = "kernelLsp.chooseReport"  # [uri, mangled]
COMPARE_REPORTS = "kernelLsp.compareReports"  # [uri, mangled]
PICK = "kernelLsp/pick"  # asked of the editor, where it said that it can: {title, items} -> {index}
