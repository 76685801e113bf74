# Builds the repository that contains this file with Conan 2. This file has not been run, only reviewed.
import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load


class Longhand(ConanFile):
    name = "longhand"
    license = "Apache-2.0"
    description = "Tensors, automatic differentiation and training in C++20"
    settings = "os", "arch", "compiler", "build_type"
    package_type = "static-library"

    def _root(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        text = load(self, os.path.join(self._root(), "CMakeLists.txt"))
        self.version = re.search(r"project\(longhand VERSION ([0-9.]+)", text).group(1)

    def export_sources(self):
        copy(self, "*", self._root(), self.export_sources_folder, excludes=("build/*", "runs/*", ".git/*"))

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("longhand is for Linux")
        check_min_cppstd(self, 20)

    def requirements(self):
        self.requires("boost/[>=1.74 <2]", visible=False)  # the program uses Boost.Program_options

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["LONGHAND_TESTS"] = "OFF"
        toolchain.cache_variables["LONGHAND_MPI"] = "OFF"
        toolchain.cache_variables["LONGHAND_UNITY"] = "ON"
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        # find_package(longhand) uses the package configuration that longhand installs.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs.append(os.path.join("lib", "cmake", "longhand"))
