# Defines what `cmake --install` installs: the program, the libraries with their headers, the library's
# HTML reference, and a package for other projects. A project that calls find_package(longhand) can link
# longhand::core, longhand::autograd and so on, or longhand::longhand for all libraries.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

if(TARGET longhand)
  install(TARGETS longhand RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  if(NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR)  # the pages are written by the program
    set(pages ${PROJECT_BINARY_DIR}/pages)
    install(DIRECTORY ${pages}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
    install(FILES ${pages}/completions/longhand
            DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES ${pages}/completions/_longhand
            DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
    install(FILES ${pages}/completions/longhand.fish
            DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  endif()
endif()

# `longhand book` reads the documents and the code and scripts to which they link.
foreach(folder apps autograd core cuda docs examples mpi nccl nn packaging scripts tasks tests)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder}
          DESTINATION ${CMAKE_INSTALL_DATADIR}/longhand/source
          FILES_MATCHING REGEX "[.](md|svg|tsv|txt|h|cpp|cu|cuh|css|html|js|sh|py|sbatch|json|ini|safetensors)$")
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/build/wasm/longhand.wasm.js OPTIONAL
        DESTINATION ${CMAKE_INSTALL_DATADIR}/longhand)
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CONTRIBUTING.md
        DESTINATION ${CMAKE_INSTALL_DATADIR}/longhand/source)

set(longhand_package ${CMAKE_INSTALL_LIBDIR}/cmake/longhand)
set(longhand_header_folders "")
foreach(folder core autograd nn tasks cuda)
  if(TARGET longhand_${folder})
    list(APPEND longhand_header_folders ${folder})
  endif()
endforeach()
install(CODE "set(LONGHAND_SOURCE \"${PROJECT_SOURCE_DIR}\")
set(LONGHAND_FOLDERS \"${longhand_header_folders}\")")
install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/install_headers.cmake)
install(CODE "set(LONGHAND_BUILD \"${PROJECT_BINARY_DIR}\")
set(LONGHAND_DOCUMENTS \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DOCDIR}\")")
install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/install_reference.cmake)
install(EXPORT longhand NAMESPACE longhand:: FILE longhand-targets.cmake
        DESTINATION ${longhand_package})

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/longhand-config.cmake.in
                              ${PROJECT_BINARY_DIR}/longhand-config.cmake
                              INSTALL_DESTINATION ${longhand_package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/longhand-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/longhand-config.cmake
              ${PROJECT_BINARY_DIR}/longhand-config-version.cmake
        DESTINATION ${longhand_package})

# The package for pkg-config. Its prefix is the prefix of `cmake --install`.
if(LONGHAND_THREADS STREQUAL "openmp")
  set(longhand_openmp_flag ${OpenMP_CXX_FLAGS})
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/longhand.pc.in ${PROJECT_BINARY_DIR}/longhand.pc @ONLY)
install(CODE "
  file(READ \"${PROJECT_BINARY_DIR}/longhand.pc\" text)
  string(REGEX REPLACE \"prefix=[^\\n]*\" \"prefix=\${CMAKE_INSTALL_PREFIX}\" text \"\${text}\")
  set(folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/pkgconfig\")
  file(WRITE \"\${folder}/longhand.pc\" \"\${text}\")")
