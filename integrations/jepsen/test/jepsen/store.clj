(ns jepsen.store
  "The one function of Jepsen's store that the checker uses."
  (:require [clojure.java.io :as io]))

(defn path!
  "A file of a test's store, in a folder that exists."
  [test & path]
  (let [file (apply io/file (:store test) (remove nil? (flatten path)))]
    (io/make-parents file)
    file))
