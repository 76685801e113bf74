# Writes OUTPUT, a C++ file in which NAME, declared by HEADER, is the text of FILE.
file(READ ${FILE} text)
if(text MATCHES "\\)page\"")
  message(FATAL_ERROR "${FILE}: expected no )page\" in it")
endif()
file(WRITE ${OUTPUT} "#include \"${HEADER}\"

const std::string_view ${NAME} = R\"page(${text})page\";
")
