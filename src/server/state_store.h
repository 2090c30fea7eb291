// Which conversation each of the pool's sessions holds, and those that wait in files for a free one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "context/session.h"
#include "memory/bundle.h"

namespace spool {

struct StoreOptions {
    std::filesystem::path folder; ///< where conversations without a session wait; empty: they are forgotten
    size_t most_saved = 1000;     ///< files kept, the newest
};

/// A key stands for all that was said in a conversation up to a reply. Thread-safe.
class StateStore {
    struct Slot;

  public:
    /// Both must outlive it. `bundle` may be nullptr.
    StateStore(SessionPool& pool, const Bundle* bundle, StoreOptions options);
    /// Saves what is not saved yet.
    ~StateStore();
    StateStore(const StateStore&) = delete;
    StateStore& operator=(const StateStore&) = delete;

    /// A session for one turn; the destructor gives it back, empty unless keep() was called.
    class Lease {
      public:
        Lease(StateStore& store, Slot& slot, std::optional<size_t> known)
            : store_(&store), slot_(&slot), known_(known) {}
        ~Lease();
        Lease(const Lease&) = delete;
        Lease& operator=(const Lease&) = delete;

        Session& session() const;
        /// Index of the key whose conversation the session holds; nullopt: it is empty.
        std::optional<size_t> known() const { return known_; }
        /// The session holds the conversation `key` now. `durable`: in its file too, before this returns.
        void keep(const std::string& key, bool durable);

      private:
        friend class StateStore;
        StateStore* store_;
        Slot* slot_;
        std::optional<size_t> known_;
        bool kept_ = false;
    };

    /// Looks for the first of `keys` that is known, in a session or a file. `alone`: no two leases of
    /// keys.front() at a time. nullptr if all sessions are busy, or that one is.
    std::unique_ptr<Lease> lease(const std::vector<std::string>& keys, bool alone);

    /// Whether a session or a file holds the conversation `key`.
    bool knows(const std::string& key) const;

    struct SlotView {
        size_t number = 0;
        bool busy = false;
        size_t tokens = 0;
        size_t cells = 0;
    };
    /// For monitoring; sizes of busy sessions are those of their last turn's end.
    std::vector<SlotView> slots() const;
    size_t busy() const;

  private:
    struct Slot {
        std::unique_ptr<Session> session;
        std::string key;   ///< empty: the session is
        std::string claim; ///< while it is busy: the key that nobody else may lease
        bool busy = false;
        bool saved = false; ///< its file is as new as the session
        uint64_t last_used = 0;
        SlotView view;
    };

    std::filesystem::path file_of(const std::string& key) const;
    bool waits_in_file(const std::string& key) const;
    Slot* take_free();
    void save(Slot& slot);
    void give_back(Slot& slot, bool kept);
    void remove_oldest_files() const;

    SessionPool* pool_;
    const Bundle* bundle_;
    StoreOptions options_;
    mutable std::mutex mutex_;
    std::vector<Slot> slots_;
    uint64_t clock_ = 0;
};

} // namespace spool
