"""Adds the library to a wheel: the one that WALDIO_LIBRARY names, for the platform that
WALDIO_PLATFORM names, or else one that make builds from waldio.c for this machine."""

import os
import subprocess
import sysconfig

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class LibraryHook(BuildHookInterface):
    def initialize(self, version, build_data):
        library = os.environ.get("WALDIO_LIBRARY")
        platform = os.environ.get("WALDIO_PLATFORM")
        if not library:
            library = os.path.join(self.directory, "waldio.so")
            os.makedirs(self.directory, exist_ok=True)
            # Warnings of a compiler that nobody has tried yet are no errors.
            make = ["make", "--always-make", f"EXTENSION={library}", "WARN=-std=gnu11", library]
            subprocess.run(make, cwd=self.root, check=True)
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["force_include"][library] = "sqlite_waldio/waldio.so"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
