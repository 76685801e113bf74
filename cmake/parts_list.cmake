# Writes OUTPUT, a C++ file that lists the parts in FOLDER. Each file NAME.cpp in FOLDER, except those in
# EXCEPT, defines `const TYPE NAME_SUFFIX`. OUTPUT defines FUNCTION, which returns all of these constants in
# alphabetical order. HEADER declares TYPE and FUNCTION in NAMESPACE. Used by CMakeLists.txt of the folder
# above, and as a script: cmake -DFOLDER=... -P cmake/parts_list.cmake
if(CMAKE_SCRIPT_MODE_FILE)
  cmake_minimum_required(VERSION 3.25)  # selects the policies for this script
endif()

function(longhand_parts_list)
  cmake_parse_arguments(arg "" "FOLDER;TYPE;SUFFIX;FUNCTION;HEADER;NAMESPACE;OUTPUT" "EXCEPT" ${ARGN})
  set(watched CONFIGURE_DEPENDS)
  if(CMAKE_SCRIPT_MODE_FILE)
    set(watched "")
  endif()
  file(GLOB files ${watched} ${arg_FOLDER}/*.cpp)
  set(declared "")
  set(listed "")
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME_WE)
    if(name IN_LIST arg_EXCEPT)
      continue()
    endif()
    string(APPEND declared "extern const ${arg_TYPE} ${name}_${arg_SUFFIX};\n")
    string(APPEND listed "\n      &${name}_${arg_SUFFIX},")
  endforeach()
  file(CONFIGURE OUTPUT ${arg_OUTPUT} @ONLY CONTENT [[
// Made by cmake/parts_list.cmake from the files of a folder.
#include <array>

#include "@arg_HEADER@"

namespace @arg_NAMESPACE@ {

@declared@
std::span<const @arg_TYPE@* const> @arg_FUNCTION@() {
  static constexpr auto all = std::to_array<const @arg_TYPE@*>({@listed@
  });
  return all;
}

}  // namespace @arg_NAMESPACE@
]])
  if(NOT CMAKE_SCRIPT_MODE_FILE)  # a separate object, which another list can replace
    set_source_files_properties(${arg_OUTPUT} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

if(CMAKE_SCRIPT_MODE_FILE)
  longhand_parts_list(FOLDER ${FOLDER} TYPE ${TYPE} SUFFIX ${SUFFIX} FUNCTION ${FUNCTION}
                      HEADER ${HEADER} NAMESPACE ${NAMESPACE} OUTPUT ${OUTPUT})
endif()
