"""The cluster on one machine: devices through NVML, pods as process groups. Importing it loads nothing heavy."""
