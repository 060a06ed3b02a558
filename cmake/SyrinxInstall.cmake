# The installed library, and what `cmake --install` puts where.  Included last: it knows every part.
#   libsyrinx.so   every part behind the C interface; nothing else is visible
#   libsyrinx.a    the same parts in one archive, for `pkg-config --static`
include(CMakePackageConfigHelpers)

set(syrinx_parts base tensor kernels store nn audio text homograph_weights models engine capi)
set(part_targets)
set(part_files)
foreach(part ${syrinx_parts})
  get_target_property(type syrinx_${part} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    list(APPEND part_targets syrinx_${part})
    list(APPEND part_files $<TARGET_FILE:syrinx_${part}>)
  endif()
endforeach()

file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/library/empty.cc CONTENT "// The shared library is made of the parts' archives.\n")
add_library(syrinx_shared SHARED ${CMAKE_BINARY_DIR}/library/empty.cc)
target_link_libraries(syrinx_shared PRIVATE
  -Wl,--whole-archive $<TARGET_FILE:syrinx_capi> -Wl,--no-whole-archive syrinx_capi)
target_link_options(syrinx_shared PRIVATE -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/syrinx.map)
set_target_properties(syrinx_shared PROPERTIES
  OUTPUT_NAME syrinx EXPORT_NAME syrinx VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
  LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/syrinx.map LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/library)
target_include_directories(syrinx_shared INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

list(TRANSFORM part_files PREPEND "addlib " OUTPUT_VARIABLE add_lines)
list(JOIN add_lines "\n" add_lines)
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/library/archive.mri
     CONTENT "create ${CMAKE_BINARY_DIR}/library/libsyrinx.a\n${add_lines}\nsave\nend\n")
add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/library/libsyrinx.a
  COMMAND ${CMAKE_AR} -M < ${CMAKE_BINARY_DIR}/library/archive.mri
  DEPENDS ${part_targets} ${CMAKE_BINARY_DIR}/library/archive.mri VERBATIM COMMENT "Archive of all parts")
add_custom_target(syrinx_archive ALL DEPENDS ${CMAKE_BINARY_DIR}/library/libsyrinx.a)

# The manual page and the completions are printed by the binary, so that they are always those of its command tree.
set(printed ${CMAKE_BINARY_DIR}/printed)
set(printed_files)
foreach(kind man bash zsh fish)
  add_custom_command(OUTPUT ${printed}/syrinx.${kind}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${printed}
    COMMAND syrinx generate ${kind} > ${printed}/syrinx.${kind}
    DEPENDS syrinx VERBATIM COMMENT "")
  list(APPEND printed_files ${printed}/syrinx.${kind})
endforeach()
add_custom_target(syrinx_printed ALL DEPENDS ${printed_files})

configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/SyrinxConfig.cmake.in ${CMAKE_BINARY_DIR}/library/SyrinxConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Syrinx)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/library/SyrinxConfigVersion.cmake COMPATIBILITY SameMinorVersion)
# What libsyrinx.a leans on: shared libraries of the system all.  The shared library brings them by itself.
set(SYRINX_PRIVATE_LIBRARIES
    "-lhwy -lfmt -lspdlog -lcurl -larchive -lz -lutf8proc -lyaml -lFLAC -logg -lopus -lmp3lame -lmpg123 -lvorbisfile -lopusfile -lsndfile -lportaudio -lstdc++ -lm -pthread")
# Relative, so that `cmake --install --prefix` may choose another place.
file(RELATIVE_PATH SYRINX_PREFIX_FROM_PKGCONFIG /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
configure_file(${CMAKE_SOURCE_DIR}/cmake/syrinx.pc.in ${CMAKE_BINARY_DIR}/library/syrinx.pc @ONLY)

install(TARGETS syrinx RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET syrinx-decode)  # found from the program's folder and from the library's (audio/child/decoder_program.h)
  install(TARGETS syrinx-decode RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/syrinx)
endif()
install(TARGETS syrinx_shared EXPORT SyrinxTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${CMAKE_BINARY_DIR}/library/libsyrinx.a DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/syrinx DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT SyrinxTargets NAMESPACE Syrinx:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Syrinx)
install(FILES ${CMAKE_BINARY_DIR}/library/SyrinxConfig.cmake ${CMAKE_BINARY_DIR}/library/SyrinxConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Syrinx)
install(FILES ${CMAKE_BINARY_DIR}/library/syrinx.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${printed}/syrinx.man DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 RENAME syrinx.1)
install(FILES ${printed}/syrinx.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME syrinx)
install(FILES ${printed}/syrinx.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions RENAME _syrinx)
install(FILES ${printed}/syrinx.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
# The unit names the program by its whole path, which `cmake --install --prefix` chooses.
if(IS_ABSOLUTE ${CMAKE_INSTALL_BINDIR})
  set(unit_bindir ${CMAKE_INSTALL_BINDIR})
else()
  set(unit_bindir "\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}")
endif()
install(CODE "
  set(SYRINX_BINDIR \"${unit_bindir}\")
  configure_file(\"${CMAKE_SOURCE_DIR}/packaging/systemd/syrinx.service.in\" \"${CMAKE_BINARY_DIR}/packaging/syrinx.service\" @ONLY)
  file(INSTALL \"${CMAKE_BINARY_DIR}/packaging/syrinx.service\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/lib/systemd/system\")")
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/docs/third_party.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

# `cmake --build FOLDER --target uninstall` removes what the last install of that folder put in place.
add_custom_target(uninstall
  COMMAND ${CMAKE_COMMAND} -DMANIFEST=${CMAKE_BINARY_DIR}/install_manifest.txt -P ${CMAKE_SOURCE_DIR}/cmake/Uninstall.cmake
  COMMENT "" VERBATIM)
