# Finds the libraries that scripts/deps installs; a missing one is named together with the way to get it.
function(spool_require package debian_package)
    find_package(${package} ${ARGN} QUIET)
    if(NOT ${package}_FOUND)
        message(FATAL_ERROR "${package} is missing: run scripts/deps, or apt-get install ${debian_package}")
    endif()
endfunction()

find_package(Threads REQUIRED)
find_package(OpenMP QUIET) # ggml links it where there is one
spool_require(fmt libfmt-dev)
spool_require(CLI11 libcli11-dev)
spool_require(ZLIB zlib1g-dev)
spool_require(OpenSSL libssl-dev) # llama.cpp's client fetches models over https

# zstd's own CMake package is not in Debian's.
find_path(ZSTD_INCLUDE_DIR zstd.h)
find_library(ZSTD_LIBRARY zstd)
if(NOT ZSTD_INCLUDE_DIR OR NOT ZSTD_LIBRARY)
    message(FATAL_ERROR "zstd is missing: run scripts/deps, or apt-get install libzstd-dev")
endif()
add_library(zstd UNKNOWN IMPORTED)
set_target_properties(zstd PROPERTIES IMPORTED_LOCATION "${ZSTD_LIBRARY}"
                      INTERFACE_INCLUDE_DIRECTORIES "${ZSTD_INCLUDE_DIR}")

find_path(EDIT_INCLUDE_DIR histedit.h)
find_library(EDIT_LIBRARY edit)
if(NOT EDIT_INCLUDE_DIR OR NOT EDIT_LIBRARY)
    message(FATAL_ERROR "libedit is missing: run scripts/deps, or apt-get install libedit-dev")
endif()

spool_require(CURL libcurl4-openssl-dev)

# gumbo brings no CMake package.
find_path(GUMBO_INCLUDE_DIR gumbo.h)
find_library(GUMBO_LIBRARY gumbo)
if(NOT GUMBO_INCLUDE_DIR OR NOT GUMBO_LIBRARY)
    message(FATAL_ERROR "gumbo is missing: run scripts/deps, or apt-get install libgumbo-dev")
endif()
add_library(gumbo UNKNOWN IMPORTED)
set_target_properties(gumbo PROPERTIES IMPORTED_LOCATION "${GUMBO_LIBRARY}"
                      INTERFACE_INCLUDE_DIRECTORIES "${GUMBO_INCLUDE_DIR}")

if(SPOOL_BUILD_TESTS)
    spool_require(GTest libgtest-dev)
endif()
if(SPOOL_BUILD_BENCH)
    spool_require(benchmark libbenchmark-dev)
endif()
