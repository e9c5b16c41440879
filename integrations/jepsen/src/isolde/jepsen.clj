(ns isolde.jepsen
  "A checker for Jepsen that asks isolde.

  Give it to a test in place of Elle's:

    {:checker (isolde.jepsen/checker {:model :list-append
                                      :consistency-models [:serializable]})}

  The program `isolde` has to be on the path of the control node, or be named by :program.
  The history, the page and an explanation of each kind of anomaly are left in the folder
  `isolde` of the test's store."
  (:require [clojure.edn :as edn]
            [clojure.java.io :as io]
            [clojure.java.shell :as shell]
            [clojure.string :as str]
            [jepsen.checker :as checker]
            [jepsen.store :as store]))

(def defaults
  {:program            "isolde"
   :consistency-models [:strict-serializable]
   :anomalies          []
   :timeout            "5m"})

(defn write-history!
  "Writes a history to a file, one operation a line. Operations of Jepsen are records, and are
  written as the maps that they are."
  [file history]
  (with-open [out (io/writer file)]
    (binding [*out* out, *print-length* nil, *print-level* nil, *print-namespace-maps* false]
      (doseq [op history]
        (prn (into {} op))))))

(defn- names
  [keywords]
  (str/join "," (map name keywords)))

(defn command
  "What is run for a history, as a vector of words."
  [{:keys [program model consistency-models anomalies timeout]} file directory]
  (cond-> [program "elle" "--model" (name model) "--output" "edn" "--timeout" timeout]
    (seq consistency-models) (into ["--consistency-models" (names consistency-models)])
    (seq anomalies)          (into ["--anomalies" (names anomalies)])
    true                     (into ["--directory" (str directory) (str file)])))

(defn- answer
  "The map of Jepsen for what a run of the program left."
  [{:keys [exit out err]}]
  (if (<= 0 exit 2)
    (cond-> (edn/read-string out)
      (not (str/blank? err)) (assoc :note (str/trim err)))
    {:valid? :unknown
     :error  (str/trim err)}))

(defn- run
  "Runs a command; a program that is not there is an answer too."
  [words]
  (try (apply shell/sh words)
       (catch java.io.IOException e
         {:exit 3, :out "", :err (str "cannot run isolde: " (.getMessage e))})))

(defn check-history
  "Checks a history and leaves what was found in a directory."
  [options history directory]
  (let [options (merge defaults options)
        file    (io/file directory "history.edn")
        page    (io/file directory "report.html")]
    (io/make-parents file)
    (write-history! file history)
    (let [result (answer (run (command options file directory)))]
      (when (false? (:valid? result))
        (run [(:program options) "report" (str file) "--output" (str page)
              "--timeout" (:timeout options)]))
      result)))

(defn checker
  "A checker for histories of one model.

    :model               :list-append, :rw-register or another one of `isolde elle`
    :consistency-models  what should hold; [:strict-serializable] if nothing is said
    :anomalies           what should be absent as well
    :timeout             for the whole check, such as \"10m\"
    :program             the program, if it is not on the path"
  [options]
  (assert (:model options) "isolde needs a :model, such as :list-append")
  (reify checker/Checker
    (check [_ test history opts]
      (let [directory (store/path! test (:subdirectory opts) "isolde" "history.edn")]
        (check-history options history (.getParentFile ^java.io.File directory))))))
