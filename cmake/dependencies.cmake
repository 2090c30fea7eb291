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
if(SPOOL_BUILD_TESTS)
    spool_require(GTest libgtest-dev)
endif()
if(SPOOL_BUILD_BENCH)
    spool_require(benchmark libbenchmark-dev)
endif()
