# Puts the headers of LONGHAND_FOLDERS and longhand.h under include/longhand of the prefix. What they
# include of each other is written "longhand/core/..." there, so that include/ is all that a compiler
# is told. Run by `cmake --install`.
set(headers longhand.h)
foreach(folder IN LISTS LONGHAND_FOLDERS)
  file(GLOB_RECURSE found RELATIVE ${LONGHAND_SOURCE} ${LONGHAND_SOURCE}/${folder}/*.h)
  list(APPEND headers ${found})
endforeach()
list(FILTER headers EXCLUDE REGEX "^core/(cpu|reference)/")  # their insides
list(JOIN LONGHAND_FOLDERS "|" folders)
foreach(header IN LISTS headers)
  file(READ ${LONGHAND_SOURCE}/${header} text)
  string(REGEX REPLACE "#include \"(${folders})/" "#include \"longhand/\\1/" text "${text}")
  set(installed ${CMAKE_INSTALL_PREFIX}/include/longhand/${header})
  file(CONFIGURE OUTPUT $ENV{DESTDIR}${installed} CONTENT "${text}" @ONLY)  # if it differs
  list(APPEND CMAKE_INSTALL_MANIFEST_FILES ${installed})
endforeach()
