// A model thinks on in a fixed amount of memory: example MODEL.gguf [BUNDLE]
#include <cstdlib>
#include <iostream>
#include <string_view>

#include <spool/spool.h>

int main(int argc, char** argv) {
    if (argc < 2) {
        std::cerr << "usage: example MODEL.gguf [BUNDLE]\n";
        return EXIT_FAILURE;
    }
    try {
        spool::Engine engine({.model = argv[1], .bundle = argc > 2 ? argv[2] : "", .window = 128});
        spool::EngineSession session = engine.new_session();
        session.read("Once upon a time");
        const auto result =
            session.generate({.max_tokens = 400, .seed = 1, .ignore_eos = true}, [](std::string_view text) {
                std::cout << text << std::flush;
                return true; // false stops it
            });
        std::cerr << "\n\n"
                  << result.tokens << " tokens, ended by " << result.stop_reason << "; "
                  << session.cells_used() << " cells hold " << session.length() << " tokens\n";
    } catch (const spool::Error& error) {
        std::cerr << "example: " << error.what() << '\n';
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
