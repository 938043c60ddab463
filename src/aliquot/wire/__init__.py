"""The shapes that leave the process: what the API, the files of `aliquot submit` and the Python client speak."""
