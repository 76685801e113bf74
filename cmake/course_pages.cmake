# Writes OUTPUT, a C++ file that defines course_pages() (tests/course_pages.h). PAGES are pages of docs/course. The
# blocks of C++ of each page become one function. Errors of the compiler name the page and its line.
cmake_minimum_required(VERSION 3.25)
set(functions "")
set(entries "")
foreach(page IN LISTS PAGES)
  get_filename_component(name ${page} NAME_WE)
  file(READ ${page} rest)
  set(line 1)  # number of the first line of `rest`
  string(APPEND functions "void ${name}_page() {\n")
  while(TRUE)
    string(FIND "${rest}" "\n```cpp\n" begin)
    if(begin EQUAL -1)
      break()
    endif()
    math(EXPR begin "${begin} + 8")
    string(SUBSTRING "${rest}" 0 ${begin} before)
    string(SUBSTRING "${rest}" ${begin} -1 rest)
    string(FIND "${rest}" "\n```\n" end)
    if(end EQUAL -1)
      message(FATAL_ERROR "${page}: a block of code has no end")
    endif()
    string(SUBSTRING "${rest}" 0 ${end} code)
    string(SUBSTRING "${rest}" ${end} -1 rest)
    foreach(text IN ITEMS before code)
      string(REGEX REPLACE "[^\n]" "" ends_of_${text} "${${text}}")
      string(LENGTH "${ends_of_${text}}" lines_of_${text})
    endforeach()
    math(EXPR line "${line} + ${lines_of_before}")
    string(APPEND functions "#line ${line} \"${page}\"\n${code}\n")
    math(EXPR line "${line} + ${lines_of_code}")
  endwhile()
  string(APPEND functions "}\n\n")
  string(APPEND entries "    {\"${name}\", ${name}_page},\n")
endforeach()
file(WRITE ${OUTPUT} "#include <algorithm>
#include <cmath>
#include <iostream>

#include \"longhand.h\"
#include \"tests/course_pages.h\"

namespace longhand {
namespace {

${functions}}  // namespace

std::span<const CoursePage> course_pages() {
  static constexpr CoursePage all[] = {
${entries}  };
  return all;
}

}  // namespace longhand
")
