# Installs the headers of LONGHAND_FOLDERS and longhand.h in include/longhand of the prefix. In the
# installed headers, includes of each other are changed to "longhand/core/...", so that a compiler needs
# only the include folder include/. `cmake --install` runs this script.
set(headers longhand.h)
foreach(folder IN LISTS LONGHAND_FOLDERS)
  file(GLOB_RECURSE found RELATIVE ${LONGHAND_SOURCE} ${LONGHAND_SOURCE}/${folder}/*.h)
  list(APPEND headers ${found})
endforeach()
list(FILTER headers EXCLUDE REGEX "^core/(cpu|reference)/")  # not part of the interface
list(JOIN LONGHAND_FOLDERS "|" folders)
foreach(header IN LISTS headers)
  file(READ ${LONGHAND_SOURCE}/${header} text)
  string(REGEX REPLACE "#include \"(${folders})/" "#include \"longhand/\\1/" text "${text}")
  set(installed ${CMAKE_INSTALL_PREFIX}/include/longhand/${header})
  # This writes only if the text has changed.
  file(CONFIGURE OUTPUT $ENV{DESTDIR}${installed} CONTENT "${text}" @ONLY)
  list(APPEND CMAKE_INSTALL_MANIFEST_FILES ${installed})
endforeach()
