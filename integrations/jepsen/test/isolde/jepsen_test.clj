(ns isolde.jepsen-test
  "Run by a test of `isolde-cli`, with the program and a folder for stores as properties."
  (:require [clojure.edn :as edn]
            [clojure.java.io :as io]
            [clojure.string :as str]
            [clojure.test :refer [deftest is run-tests testing]]
            [isolde.jepsen :as isolde]
            [jepsen.checker :as checker]))

(def program (System/getProperty "isolde.program"))
(def store (System/getProperty "isolde.store"))
(def data (System/getProperty "isolde.data"))

;; Operations of Jepsen are records.
(defrecord Op [index time type process f value])

(defn op
  [index type process value]
  (->Op index (* 10 index) type process :txn value))

(defn check
  [options history test-name opts]
  (checker/check (isolde/checker (merge {:program program} options))
                 {:store (str store "/" test-name)} history opts))

(def skew
  [(op 0 :invoke 0 [[:r :x nil] [:append :y 1]])
   (op 1 :invoke 1 [[:r :y nil] [:append :x 1]])
   (op 2 :ok 0 [[:r :x []] [:append :y 1]])
   (op 3 :ok 1 [[:r :y []] [:append :x 1]])
   (op 4 :invoke 0 [[:r :x nil] [:r :y nil]])
   (op 5 :ok 0 [[:r :x [1]] [:r :y [1]]])])

(deftest a-violation-is-jepsens-map-with-its-files
  (let [result (check {:model :list-append} skew "skew" {:subdirectory "keys/1"})
        files  (set (.list (io/file store "skew/keys/1/isolde")))]
    (is (false? (:valid? result)))
    (is (every? keyword? (:anomaly-types result)))
    (is (set? (:not result)))
    (is (= #{:strict-serializable} (:not result)))
    (doseq [kind (:anomaly-types result)]
      (is (seq (get-in result [:anomalies kind])))
      (is (contains? files (str (name kind) ".txt"))))
    (is (contains? files "report.html"))
    (is (contains? files "history.edn"))))

(deftest what-holds-is-valid
  (is (true? (:valid? (check {:model :list-append, :consistency-models [:snapshot-isolation]}
                             skew "holds" {})))))

(deftest trouble-is-unknown-and-says-why
  (let [result (check {:model :list-append, :program "/nowhere/isolde"} skew "nowhere" {})]
    (is (= :unknown (:valid? result)))
    (is (str/includes? (:error result) "cannot run isolde")))
  (let [result (check {:model :no-such-model} skew "model" {})]
    (is (= :unknown (:valid? result)))
    (is (str/includes? (:error result) "expected a model"))))

(defn recorded
  "A history that others recorded, if it is there."
  [path]
  (let [file (io/file data path)]
    (when (.exists file)
      (let [lines (str/split-lines (slurp file))]
        (map #(edn/read-string {:default (fn [_ value] value)} %)
             (remove str/blank? lines))))))

(deftest histories-of-others-have-their-known-answers
  (doseq [[path model models valid] [["elle/paper-example.edn" :list-append
                                      [:strict-serializable] false]
                                     ["elle-cli/elle/rw-register.edn" :rw-register
                                      [:strict-serializable] :any]
                                     ["elle-cli/jepsen/counter.edn" :counter [] :any]]]
    (if-let [history (recorded path)]
      (testing path
        (let [result (check {:model model, :consistency-models models} history
                            (str/replace path "/" "-") {})]
          (is (contains? #{true false} (:valid? result)) result)
          (when-not (= :any valid)
            (is (= valid (:valid? result))))))
      (println "skipped: no" path))))

(defn -main
  []
  (let [{:keys [fail error]} (run-tests 'isolde.jepsen-test)]
    (shutdown-agents)
    (System/exit (if (zero? (+ fail error)) 0 1))))
