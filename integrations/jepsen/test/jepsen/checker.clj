(ns jepsen.checker
  "The protocol as Jepsen has it, so that tests need nothing but Clojure.")

(defprotocol Checker
  (check [checker test history opts]))
