"""Names of our own in the protocol: commands, requests, notifications."""

WRITE_REPORT = "kernelLsp.writeReport"
REBUILD = "kernelLsp.rebuild"
GPUS = "kernelLsp/gpus"
STATUS = "kernelLsp/status"
