"""What the rule's shell line runs: prints what a sandbox lets it see."""
import os
import platform

print("hello from", platform.node())
print("user", os.getuid(), "files", sorted(os.listdir("/task")))
