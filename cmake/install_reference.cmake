# Makes the HTML reference of the library with Doxygen and installs it in html/ of the folder
# LONGHAND_DOCUMENTS. Without Doxygen, prints one line and installs no reference. `cmake --install` runs
# this script.
find_program(doxygen doxygen PATHS ENV PATH NO_DEFAULT_PATH)
if(doxygen)
  set(made ${LONGHAND_BUILD}/reference)
  file(REMOVE_RECURSE ${made}/html)
  file(MAKE_DIRECTORY ${made})
  file(READ ${LONGHAND_SOURCE}/docs/Doxyfile settings)
  # The last value of a setting applies. Other versions of Doxygen may print other warnings.
  file(WRITE ${made}/Doxyfile "${settings}OUTPUT_DIRECTORY = \"${made}\"\nWARN_AS_ERROR = NO\n")
  execute_process(COMMAND ${doxygen} ${made}/Doxyfile WORKING_DIRECTORY ${LONGHAND_SOURCE}
                  RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE errors)
  if(result EQUAL 0)
    file(INSTALL ${made}/html DESTINATION ${LONGHAND_DOCUMENTS})
  else()
    message(STATUS "The HTML reference is not installed, because Doxygen failed: ${result} ${errors}")
  endif()
else()
  message(STATUS "The HTML reference is not installed, because Doxygen is missing "
                 "(scripts/setup.sh reference installs it)")
endif()
