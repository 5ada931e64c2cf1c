#include "base/queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace cachalot {
namespace {

TEST(Queue, KeepsOrderAndDrainsEverything) {
  Queue<int> queue;
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(queue.Push(int(i)));
  EXPECT_EQ(queue.item_count(), 5u);
  EXPECT_EQ(queue.WaitPop(), 0);
  EXPECT_EQ(queue.Drain(), (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(queue.Drain(), std::vector<int>());
}

TEST(Queue, AFullQueueRefusesAndLeavesTheItemWithItsOwner) {
  Queue<std::unique_ptr<int>> queue(1);
  EXPECT_TRUE(queue.TryPush(std::make_unique<int>(1)));
  auto second = std::make_unique<int>(2);
  EXPECT_FALSE(queue.TryPush(std::move(second)));
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(**queue.WaitPop(), 1);
  EXPECT_TRUE(queue.TryPush(std::move(second)));
}

TEST(Queue, AfterCloseNothingEntersAndTheRestCanBeTaken) {
  Queue<int> queue;
  EXPECT_TRUE(queue.Push(1));
  queue.Close();
  EXPECT_TRUE(queue.closed());
  EXPECT_FALSE(queue.Push(2));
  EXPECT_FALSE(queue.TryPush(3));
  EXPECT_EQ(queue.WaitPop(), 1);
  EXPECT_EQ(queue.WaitPop(), std::nullopt);
}

TEST(Queue, CloseWakesAWaitingConsumerAndAWaitingProducer) {
  Queue<int> empty;
  std::thread consumer([&] { EXPECT_EQ(empty.WaitPop(), std::nullopt); });
  Queue<int> full(1);
  EXPECT_TRUE(full.Push(1));
  std::thread producer([&] { EXPECT_FALSE(full.Push(2)); });
  empty.Close();
  full.Close();
  consumer.join();
  producer.join();
}

TEST(Queue, RoomMadeByAConsumerLetsAWaitingProducerGoOn) {
  Queue<int> queue(1);
  std::thread producer([&] {
    for (int i = 0; i < 1000; ++i) EXPECT_TRUE(queue.Push(int(i)));
    queue.Close();
  });
  int expected = 0;
  while (const std::optional<int> item = queue.WaitPop()) EXPECT_EQ(*item, expected++);
  EXPECT_EQ(expected, 1000);
  producer.join();
}

TEST(Queue, ItemsOfManyProducersAllArriveInEachProducersOrder) {
  Queue<std::pair<int, int>> queue;
  std::vector<std::thread> producers;
  for (int p = 0; p < 4; ++p) {
    producers.emplace_back([&queue, p] {
      for (int i = 0; i < 500; ++i) EXPECT_TRUE(queue.Push({p, i}));
    });
  }
  std::vector<int> next(4);
  for (int taken = 0; taken < 2000;) {
    for (const auto& [producer, i] : queue.WaitDrain(Nanos::max())) {
      EXPECT_EQ(i, next[producer]++);
      ++taken;
    }
  }
  for (std::thread& producer : producers) producer.join();
}

TEST(Queue, WaitDrainReturnsNothingWhenTheTimeIsOver) {
  Queue<int> queue;
  EXPECT_TRUE(queue.WaitDrain(std::chrono::milliseconds(1)).empty());
  EXPECT_TRUE(queue.Push(7));
  EXPECT_EQ(queue.WaitDrain(Nanos(0)), std::vector<int>{7});
}

}  // namespace
}  // namespace cachalot
