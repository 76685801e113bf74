# Writes OUTPUT, a C++ file with the list of the things that lie in FOLDER: each file NAME.cpp there
# defines `const TYPE NAME_SUFFIX`, and FUNCTION returns them all, by name. HEADER declares TYPE and
# FUNCTION. Run by nn/CMakeLists.txt, and as a script: cmake -DFOLDER=... -P cmake/parts_list.cmake
function(longhand_parts_list)
  cmake_parse_arguments(arg "" "FOLDER;TYPE;SUFFIX;FUNCTION;HEADER;OUTPUT" "" ${ARGN})
  set(watched CONFIGURE_DEPENDS)
  if(CMAKE_SCRIPT_MODE_FILE)
    set(watched "")
  endif()
  file(GLOB files ${watched} ${arg_FOLDER}/*.cpp)
  set(declared "")
  set(listed "")
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME_WE)
    string(APPEND declared "extern const ${arg_TYPE} ${name}_${arg_SUFFIX};\n")
    string(APPEND listed "\n      &${name}_${arg_SUFFIX},")
  endforeach()
  file(CONFIGURE OUTPUT ${arg_OUTPUT} @ONLY CONTENT [[
// Made by cmake/parts_list.cmake from the files of a folder.
#include <array>

#include "@arg_HEADER@"

namespace longhand::nn {

@declared@
std::span<const @arg_TYPE@* const> @arg_FUNCTION@() {
  static constexpr auto all = std::to_array<const @arg_TYPE@*>({@listed@
  });
  return all;
}

}  // namespace longhand::nn
]])
endfunction()

if(CMAKE_SCRIPT_MODE_FILE)
  cmake_minimum_required(VERSION 3.25)
  longhand_parts_list(FOLDER ${FOLDER} TYPE ${TYPE} SUFFIX ${SUFFIX} FUNCTION ${FUNCTION}
                      HEADER ${HEADER} OUTPUT ${OUTPUT})
endif()
