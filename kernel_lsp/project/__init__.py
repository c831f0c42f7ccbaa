"""Which command builds a file: compile databases, nvcc flags, tools found on the machine."""
