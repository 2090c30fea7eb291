#include "server/state_store.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/hash.h"
#include "core/log.h"
#include "generation/session_file.h"

namespace spool {

StateStore::StateStore(SessionPool& pool, const Bundle* bundle, StoreOptions options)
    : pool_(&pool), bundle_(bundle), options_(std::move(options)) {
    if (!options_.folder.empty()) {
        std::filesystem::create_directories(options_.folder);
    }
    slots_.resize(pool.options().sessions);
    for (size_t i = 0; i < slots_.size(); ++i) {
        slots_[i].session = pool.open();
        slots_[i].view.number = i;
    }
}

StateStore::~StateStore() {
    for (Slot& slot : slots_) {
        try {
            save(slot);
        } catch (const std::exception& error) {
            log_warning("a conversation could not be saved: {}", error.what());
        }
    }
}

std::filesystem::path StateStore::file_of(const std::string& key) const {
    return options_.folder / (sha256(std::as_bytes(std::span(key))) + ".spool");
}

bool StateStore::waits_in_file(const std::string& key) const {
    return !options_.folder.empty() && std::filesystem::exists(file_of(key));
}

bool StateStore::knows(const std::string& key) const {
    const std::scoped_lock lock(mutex_);
    // A busy session's own key is its lease's to change.
    return waits_in_file(key) ||
           std::ranges::any_of(slots_, [&](const Slot& s) { return (s.busy ? s.claim : s.key) == key; });
}

StateStore::Slot* StateStore::take_free() {
    Slot* oldest = nullptr;
    for (Slot& slot : slots_) {
        if (!slot.busy && (oldest == nullptr || slot.last_used < oldest->last_used)) {
            oldest = &slot;
        }
    }
    return oldest;
}

std::unique_ptr<StateStore::Lease> StateStore::lease(const std::vector<std::string>& keys, bool alone) {
    Slot* slot = nullptr;
    std::optional<size_t> known;
    std::string file_key;
    {
        const std::scoped_lock lock(mutex_);
        const std::string claim = alone ? keys.front() : "";
        if (alone && std::ranges::any_of(slots_, [&](const Slot& s) { return s.busy && s.claim == claim; })) {
            return nullptr;
        }
        for (size_t i = 0; i < keys.size() && !known; ++i) {
            const auto holder =
                std::ranges::find_if(slots_, [&](const Slot& s) { return !s.busy && s.key == keys[i]; });
            if (holder != slots_.end()) {
                slot = &*holder;
                known = i;
            } else if (waits_in_file(keys[i])) {
                slot = take_free();
                known = i;
                file_key = keys[i];
            }
        }
        if (slot == nullptr) {
            slot = take_free();
            known.reset();
        }
        if (slot == nullptr) {
            return nullptr;
        }
        slot->busy = true;
        slot->claim = claim;
    }
    auto lease = std::make_unique<Lease>(*this, *slot, known);
    if (!known || !file_key.empty()) {
        save(*slot);
        slot->session->clear();
        slot->key.clear();
    }
    if (!file_key.empty()) {
        try {
            restore_session(*slot->session, *pool_, bundle_, file_of(file_key));
            slot->key = file_key;
            slot->saved = true;
        } catch (const Error& error) {
            log_warning("a saved conversation is read anew: {}", error.what());
            slot->session->clear();
            lease->known_.reset();
        }
    }
    return lease;
}

void StateStore::save(Slot& slot) {
    if (options_.folder.empty() || slot.key.empty() || slot.saved) {
        return;
    }
    save_session(*slot.session, *pool_, bundle_, file_of(slot.key));
    slot.saved = true;
    remove_oldest_files();
}

void StateStore::remove_oldest_files() const {
    const std::scoped_lock lock(mutex_);
    std::vector<std::pair<std::filesystem::file_time_type, std::filesystem::path>> files;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(options_.folder, error)) {
        if (entry.path().extension() == ".spool") {
            files.emplace_back(entry.last_write_time(error), entry.path());
        }
    }
    if (files.size() <= options_.most_saved) {
        return;
    }
    std::ranges::sort(files);
    for (size_t i = 0; i < files.size() - options_.most_saved; ++i) {
        std::filesystem::remove(files[i].second, error);
    }
}

void StateStore::give_back(Slot& slot, bool kept) {
    if (!kept) {
        slot.session->clear();
        slot.key.clear();
    }
    const std::scoped_lock lock(mutex_);
    slot.busy = false;
    slot.last_used = ++clock_;
    slot.view.tokens = slot.session->transcript().tokens.size();
    slot.view.cells = slot.session->cells_used();
}

StateStore::Lease::~Lease() { store_->give_back(*slot_, kept_); }

Session& StateStore::Lease::session() const { return *slot_->session; }

void StateStore::Lease::keep(const std::string& key, bool durable) {
    slot_->key = key;
    slot_->saved = false;
    kept_ = true;
    if (durable) {
        store_->save(*slot_);
    }
}

std::vector<StateStore::SlotView> StateStore::slots() const {
    const std::scoped_lock lock(mutex_);
    std::vector<SlotView> views;
    views.reserve(slots_.size());
    for (const Slot& slot : slots_) {
        views.push_back(slot.view);
        views.back().busy = slot.busy;
    }
    return views;
}

size_t StateStore::busy() const {
    const std::scoped_lock lock(mutex_);
    return static_cast<size_t>(std::ranges::count_if(slots_, &Slot::busy));
}

} // namespace spool
