# Writes OUTPUT, a C++ file that defines NAME as the text of FILE. HEADER declares NAME.
file(READ ${FILE} text)
if(text MATCHES "\\)page\"")
  message(FATAL_ERROR "${FILE}: expected no )page\" in it")
endif()
file(WRITE ${OUTPUT} "#include \"${HEADER}\"

const std::string_view ${NAME} = R\"page(${text})page\";
")
