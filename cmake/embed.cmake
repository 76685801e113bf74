# Writes OUTPUT, a C++ file that defines page_files(), which returns the texts of FILES in FOLDER.
set(entries "")
foreach(name IN LISTS FILES)
  file(READ ${FOLDER}/${name} text)
  if(text MATCHES "\\)page\"")
    message(FATAL_ERROR "${name}: expected no )page\" in it")
  endif()
  cmake_path(GET name EXTENSION LAST_ONLY extension)
  set(type "text/html; charset=utf-8")
  if(extension STREQUAL ".js")
    set(type "text/javascript; charset=utf-8")
  elseif(extension STREQUAL ".css")
    set(type "text/css; charset=utf-8")
  endif()
  set(path "/${name}")
  if(name STREQUAL "index.html")
    set(path "/")
  endif()
  string(APPEND entries "    {\"${path}\", \"${type}\", R\"page(${text})page\"},\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"apps/serve/page_files.h\"

namespace longhand::app {

std::span<const PageFile> page_files() {
  static constexpr PageFile all[] = {
${entries}  };
  return all;
}

}  // namespace longhand::app
")
