# Writes OUTPUT, a C++ file with the version and the commit. The script runs at every build and changes
# the file only if one of them has changed.
#
# The commit is read from git, or from the files of the repository if git is not installed or fails.
# Without a repository it is read from cmake/commit.txt, which `git archive` fills in. If all of this
# fails, it is "unknown".
cmake_minimum_required(VERSION 3.25)

# Reads the checked-out commit of a .git folder, or of the .git file of a worktree, without git.
function(read_commit folder result)
  set(${result} "" PARENT_SCOPE)
  if(EXISTS "${folder}" AND NOT IS_DIRECTORY "${folder}")
    file(STRINGS "${folder}" line LIMIT_COUNT 1)
    string(REGEX REPLACE "^gitdir: " "" line "${line}")
    cmake_path(ABSOLUTE_PATH line BASE_DIRECTORY "${SOURCE}" OUTPUT_VARIABLE folder)
  endif()
  if(NOT EXISTS "${folder}/HEAD")
    return()
  endif()
  set(shared "${folder}")
  if(EXISTS "${folder}/commondir")
    file(STRINGS "${folder}/commondir" line LIMIT_COUNT 1)
    cmake_path(ABSOLUTE_PATH line BASE_DIRECTORY "${folder}" OUTPUT_VARIABLE shared)
  endif()
  file(STRINGS "${folder}/HEAD" head LIMIT_COUNT 1)
  if(head MATCHES "^ref: (.+)$")
    set(ref "${CMAKE_MATCH_1}")
    set(head "")
    if(EXISTS "${shared}/${ref}")
      file(STRINGS "${shared}/${ref}" head LIMIT_COUNT 1)
    elseif(EXISTS "${shared}/packed-refs")
      file(STRINGS "${shared}/packed-refs" lines REGEX " ${ref}$")
      string(REGEX MATCH "^[0-9a-f]+" head "${lines}")
    endif()
  endif()
  set(${result} "${head}" PARENT_SCOPE)
endfunction()

set(commit "")
if(EXISTS "${SOURCE}/.git")
  find_program(git git)
  if(git)
    execute_process(COMMAND ${git} -C ${SOURCE} rev-parse HEAD OUTPUT_VARIABLE commit ERROR_QUIET
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
    execute_process(COMMAND ${git} -C ${SOURCE} status --porcelain --untracked-files=no
                    OUTPUT_VARIABLE changes ERROR_QUIET)
  endif()
  if(NOT commit MATCHES "^[0-9a-f]+$")
    read_commit("${SOURCE}/.git" commit)
  elseif(changes)
    string(APPEND commit "+changes")
  endif()
else()
  file(STRINGS "${SOURCE}/cmake/commit.txt" commit LIMIT_COUNT 1)
endif()
if(NOT commit MATCHES "^[0-9a-f]+(\\+changes)?$")
  set(commit unknown)
endif()

file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT [[
#include "apps/version.h"

namespace longhand::app {

const std::string_view version = "@VERSION@";
const std::string_view commit = "@commit@";
const std::string_view compiler = "@COMPILER@";
const std::string_view build = "@BUILD@";

}  // namespace longhand::app
]])
