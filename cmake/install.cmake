# `cmake --install BUILD --prefix PREFIX`: the program, and the library that find_package(spool) finds.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS spool RUNTIME)
# It finds LibTorch where it was built against it: too large to be copied along.
if(SPOOL_BUILD_TRAIN)
    set_target_properties(spool-train-program PROPERTIES INSTALL_RPATH "${SPOOL_TORCH}/lib")
    install(TARGETS spool-train-program RUNTIME)
endif()

# llama.cpp and what it brings are linked in, and their licences ask to travel with them.
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" TYPE DOC)
install(FILES "${LLAMA_CPP_SOURCE}/LICENSE" TYPE DOC RENAME LICENSE-llama.cpp)
install(DIRECTORY "${LLAMA_CPP_SOURCE}/licenses/" TYPE DOC)

# The program prints its completion scripts; when it is built for another machine they are left out.
if(NOT CMAKE_CROSSCOMPILING)
    set(completions "${PROJECT_BINARY_DIR}/completions")
    file(MAKE_DIRECTORY "${completions}")
    foreach(shell bash zsh fish)
        add_custom_command(OUTPUT "${completions}/${shell}" COMMAND spool completion ${shell} > "${completions}/${shell}"
                           DEPENDS spool COMMENT "Writing the completion script for ${shell}" VERBATIM)
        list(APPEND completion_scripts "${completions}/${shell}")
    endforeach()
    add_custom_target(completions ALL DEPENDS ${completion_scripts})
    install(FILES "${completions}/bash" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" RENAME spool)
    install(FILES "${completions}/zsh" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions" RENAME _spool)
    install(FILES "${completions}/fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d"
            RENAME spool.fish)
endif()

if(TARGET spool-shared)
    set(package "${CMAKE_INSTALL_LIBDIR}/cmake/spool")
    set(version_file "${PROJECT_BINARY_DIR}/spoolConfigVersion.cmake")
    set_target_properties(spool-shared PROPERTIES EXPORT_NAME spool)
    write_basic_package_version_file("${version_file}" COMPATIBILITY SameMinorVersion)
    install(TARGETS spool-shared EXPORT spool)
    install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/spool" TYPE INCLUDE FILES_MATCHING PATTERN "*.h")
    # The library needs nothing that a user has to find first, so the targets file is the whole package.
    install(EXPORT spool FILE spoolConfig.cmake NAMESPACE spool:: DESTINATION "${package}")
    install(FILES "${version_file}" DESTINATION "${package}")
endif()
