#pragma once

#include <span>
#include <string_view>

namespace longhand {

/// The code of a page of docs/course.
struct CoursePage {
  std::string_view name;  // name of the page's file, without extension
  void (*run)();          // the blocks of C++ of the page, in order
};

/// All pages of docs/course, in alphabetical order. The build writes this function
/// (cmake/course_pages.cmake).
std::span<const CoursePage> course_pages();

}  // namespace longhand
