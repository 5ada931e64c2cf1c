// Answers to questions that are asked again and again, of which a log holds those that differ from the last one.
// Threads:   each belongs to one.
// Ownership: values.
// Invariant: who asks a reader what the writer was told, in the same order, gets the same answers. Who asks otherwise
//            gets, of each key, an answer that was given for it by the end of the step; the usual one if none was.
// Cost:      a look-up per question; memory for the keys whose last answer is not the usual one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cachalot::engine {

template <class T>
struct ChangedAnswer {
  uint32_t nth = 0;  // question of its step, the first being 1
  uint64_t key = 0;  // what was asked about
  T answer{};
};

template <class T>
class LastAnswers {
 public:
  explicit LastAnswers(T usual) : usual_(usual) {}
  T Of(uint64_t key) const {
    const auto found = others_.find(key);
    return found == others_.end() ? usual_ : found->second;
  }
  void Set(uint64_t key, const T& answer) {
    if (answer == usual_) {
      others_.erase(key);
    } else {
      others_.insert_or_assign(key, answer);
    }
  }

 private:
  const T usual_;
  std::unordered_map<uint64_t, T> others_;
};

template <class T>
class AnswerWriter {
 public:
  explicit AnswerWriter(T usual) : last_(usual) {}
  void Note(uint64_t key, const T& answer) {
    ++asked_;
    if (last_.Of(key) == answer) return;
    last_.Set(key, answer);
    changed_.push_back({asked_, key, answer});
  }
  // Those of the step, which ends.
  std::vector<ChangedAnswer<T>> Take() {
    asked_ = 0;
    return std::exchange(changed_, {});
  }

 private:
  LastAnswers<T> last_;
  std::vector<ChangedAnswer<T>> changed_;
  uint32_t asked_ = 0;
};

template <class T>
class AnswerReader {
 public:
  explicit AnswerReader(T usual) : last_(usual) {}
  // Those of the next step.
  void Begin(std::vector<ChangedAnswer<T>> changed) {
    for (; next_ < changed_.size(); ++next_) last_.Set(changed_[next_].key, changed_[next_].answer);
    changed_ = std::move(changed);
    next_ = asked_ = 0;
  }
  T Answer(uint64_t key) {
    ++asked_;
    for (; next_ < changed_.size() && changed_[next_].nth <= asked_; ++next_) {
      last_.Set(changed_[next_].key, changed_[next_].answer);
    }
    return last_.Of(key);
  }

 private:
  LastAnswers<T> last_;
  std::vector<ChangedAnswer<T>> changed_;
  size_t next_ = 0;
  uint32_t asked_ = 0;
};

}  // namespace cachalot::engine
