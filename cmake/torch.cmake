# LibTorch, for the trainer alone: the C++ half of the pinned PyPI package that scripts/deps installs into
# SPOOL_CACHE_DIR/torch. Its own CMake package is not used: built for CUDA, it asks for the CUDA toolkit even where
# only the processor is used. Defines the imported target torch.
file(GLOB torch_candidates "${SPOOL_CACHE_DIR}/torch/lib/python3*/site-packages/torch")
set(SPOOL_TORCH "${torch_candidates}" CACHE PATH "LibTorch's folder: the one that holds include/ and lib/")
if(NOT EXISTS "${SPOOL_TORCH}/include/ATen/ATen.h")
    message(FATAL_ERROR "LibTorch is missing: run scripts/deps, or set SPOOL_TORCH to the folder of a Python "
                        "package torch, or leave the trainer out with -DSPOOL_BUILD_TRAIN=OFF")
endif()
file(READ "${SPOOL_TORCH}/version.py" torch_version)
string(REGEX MATCH "__version__ = '([^']*)'" torch_version "${torch_version}")
message(STATUS "LibTorch ${CMAKE_MATCH_1} in ${SPOOL_TORCH}")

find_path(SPOOL_GLOO gloo/config.h DOC "Folder of Gloo's headers, which LibTorch's own distributed headers include")
if(NOT SPOOL_GLOO)
    message(FATAL_ERROR "Gloo's headers are missing: run scripts/deps (Debian: libgloo-dev), or leave the trainer out "
                        "with -DSPOOL_BUILD_TRAIN=OFF")
endif()

add_library(torch INTERFACE IMPORTED)
target_compile_definitions(torch INTERFACE USE_C10D_GLOO)
# Searched last: its folder also holds a copy of fmt, which must not shadow the one spool is linked with.
target_compile_options(torch INTERFACE "SHELL:-idirafter ${SPOOL_TORCH}/include"
                       "SHELL:-idirafter ${SPOOL_TORCH}/include/torch/csrc/api/include")
# LibTorch's folder also holds the OpenMP runtime it is built with; CMake's warning about two of that name is harmless, since both are GCC's.
foreach(part torch torch_cpu torch_cuda c10 c10_cuda)
    if(EXISTS "${SPOOL_TORCH}/lib/lib${part}.so")
        target_link_libraries(torch INTERFACE "${SPOOL_TORCH}/lib/lib${part}.so")
    endif()
endforeach()
