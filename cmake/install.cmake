# make install: headers, static and shared library, oxgen.pc, CMake package, program, man page,
# shell completion. Only names that start with ox_ and carry OX_API leave the shared library.
add_library(oxgen_shared SHARED $<TARGET_OBJECTS:oxgen_objects>)
set_target_properties(oxgen_shared PROPERTIES OUTPUT_NAME oxgen VERSION ${PROJECT_VERSION} SOVERSION 0)
target_link_libraries(oxgen_shared PRIVATE PkgConfig::PCRE2 PkgConfig::UTF8PROC Threads::Threads m ${CMAKE_DL_LIBS})
target_link_options(oxgen_shared PRIVATE LINKER:--version-script=${CMAKE_SOURCE_DIR}/cmake/exports.map
                                         LINKER:--no-undefined)

install(TARGETS oxgen_shared oxgen_static LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
                                          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/oxgen DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# Both packages find the rest from where they lie themselves, so a tree may be moved or staged.
foreach(what pkgconfig cmake/oxgen)
  cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} OUTPUT_VARIABLE from)
  file(RELATIVE_PATH up ${from}/${what} ${CMAKE_INSTALL_PREFIX})
  string(REGEX REPLACE "/$" "" up_from_${what} ${up})
endforeach()
set(OXGEN_UP_FROM_PC ${up_from_pkgconfig})
set(OXGEN_UP_FROM_CMAKE "${up_from_cmake/oxgen}")
configure_file(cmake/oxgen.pc.in oxgen.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/oxgen.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
configure_file(cmake/oxgen-config.cmake.in oxgen-config.cmake @ONLY)
include(CMakePackageConfigHelpers)
write_basic_package_version_file(oxgen-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/oxgen-config.cmake ${CMAKE_BINARY_DIR}/oxgen-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/oxgen)
install(FILES LICENSE THIRD-PARTY.md README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

if(TARGET oxgen_cli)
  install(TARGETS oxgen_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  foreach(what man bash zsh)
    add_custom_command(OUTPUT help/${what} DEPENDS oxgen_cli
                       COMMAND ${CMAKE_COMMAND} -E make_directory help
                       COMMAND oxgen_cli help ${what} > help/${what})
    list(APPEND help_files ${CMAKE_BINARY_DIR}/help/${what})
  endforeach()
  add_custom_target(oxgen_help ALL DEPENDS ${help_files})
  install(FILES ${CMAKE_BINARY_DIR}/help/man DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 RENAME oxgen.1)
  install(FILES ${CMAKE_BINARY_DIR}/help/bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME oxgen)
  install(FILES ${CMAKE_BINARY_DIR}/help/zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _oxgen)
endif()
