      ******************************************************************
      * LEDGER - CURRENT ACCOUNT LEDGER, BATCH
      *
      * READS FIXED-WIDTH REQUESTS ON STANDARD INPUT, ONE A LINE, AND
      * ANSWERS EACH WITH ONE FIXED-WIDTH REPLY ON STANDARD OUTPUT.
      * FUNCTIONS: BALANCE, TRANSFER, FEE.
      *
      * FILES   LEDGERMST  ACCOUNT MASTER, READ ONLY, ASCENDING BY
      *                    ACCOUNT NUMBER, WITH OPENING BALANCES.
      *         LEDGERJNL  JOURNAL OF TRANSFERS, APPEND ONLY.
      *
      * RULE    THE JOURNAL IS THE TRUTH. A TRANSFER IS ONE RECORD,
      *         WRITTEN WITH ONE WRITE BEFORE ANY BALANCE IN STORAGE
      *         CHANGES AND BEFORE ANY REPLY. A RUN THAT IS KILLED HAS
      *         THEREFORE DONE A TRANSFER WHOLLY OR NOT AT ALL.
      ******************************************************************
       IDENTIFICATION DIVISION.
       PROGRAM-ID. LEDGER.
       ENVIRONMENT DIVISION.
       INPUT-OUTPUT SECTION.
       FILE-CONTROL.
           SELECT REQUESTS ASSIGN TO KEYBOARD
               ORGANIZATION LINE SEQUENTIAL
               FILE STATUS IS WS-REQUEST-STATUS.
           SELECT MASTER ASSIGN TO "LEDGERMST"
               ORGANIZATION LINE SEQUENTIAL
               FILE STATUS IS WS-MASTER-STATUS.
           SELECT OPTIONAL JOURNAL ASSIGN TO "LEDGERJNL"
               ORGANIZATION SEQUENTIAL
               LOCK MODE EXCLUSIVE
               FILE STATUS IS WS-JOURNAL-STATUS.
           SELECT REPAIRED ASSIGN TO WS-REPAIRED-NAME
               ORGANIZATION SEQUENTIAL
               FILE STATUS IS WS-REPAIRED-STATUS.
       DATA DIVISION.
       FILE SECTION.
       FD  REQUESTS.
       COPY "request.cpy".

       FD  MASTER.
       COPY "account.cpy".

       FD  JOURNAL.
       COPY "journal.cpy".

       FD  REPAIRED.
       01  REPAIRED-RECORD             PIC X(160).

       WORKING-STORAGE SECTION.
       01  WS-FILE-STATUSES.
           05  WS-REQUEST-STATUS       PIC X(2).
           05  WS-MASTER-STATUS        PIC X(2).
           05  WS-JOURNAL-STATUS       PIC X(2).
           05  WS-REPAIRED-STATUS      PIC X(2).
       01  WS-JOURNAL-NAME             PIC X(250).
       01  WS-REPAIRED-NAME            PIC X(254).

       01  WS-FILE-DETAILS.
           05  WS-FILE-SIZE            PIC X(8) COMP-X.
           05  FILLER                  PIC X(8).

       COPY "reply.cpy".

      * ACCOUNTS, IN THE MASTER'S ORDER SO THAT SEARCH ALL MAY BE USED.
       78  MAX-ACCOUNTS                VALUE 5000.
       01  WS-ACCOUNT-COUNT            PIC 9(5) COMP-5 VALUE 0.
       01  WS-ACCOUNTS.
           05  WS-ACCOUNT-ENTRY OCCURS 1 TO MAX-ACCOUNTS TIMES
               DEPENDING ON WS-ACCOUNT-COUNT
               ASCENDING KEY IS AC-NUMBER INDEXED BY AC-IX.
               10  AC-NUMBER           PIC X(10).
               10  AC-CURRENCY         PIC X(3).
               10  AC-BALANCE          PIC S9(13) COMP-5.

      * REFERENCES EVER USED, HASHED WITH LINEAR PROBING. THE TABLE HAS
      * A PRIME SIZE AND IS DECLARED FULL AT THREE QUARTERS.
       78  REFERENCE-SLOTS             VALUE 262147.
       78  MAX-REFERENCES              VALUE 196000.
       01  WS-REFERENCES.
           05  WS-REFERENCE-ENTRY OCCURS REFERENCE-SLOTS TIMES.
               10  RF-SEQUENCE         PIC 9(9) COMP-5.
               10  RF-REFERENCE        PIC X(32).
               10  RF-DEBIT-IX         PIC 9(5) COMP-5.
               10  RF-CREDIT-IX        PIC 9(5) COMP-5.
               10  RF-AMOUNT           PIC 9(13) COMP-5.
               10  RF-DEBIT-BALANCE    PIC S9(13) COMP-5.
               10  RF-CREDIT-BALANCE   PIC S9(13) COMP-5.
               10  RF-TEXT             PIC X(32).
       01  WS-SEQUENCE                 PIC 9(9) COMP-5 VALUE 0.
       01  WS-SLOT                     PIC 9(9) COMP-5.
       01  WS-HASH                     PIC 9(18) COMP-5.
       01  WS-QUOTIENT                 PIC 9(18) COMP-5.
       01  WS-POSITION                 PIC 9(4) COMP-5.
       01  WS-KEY                      PIC X(32).

       COPY "tariff.cpy".

       01  WS-WORK.
           05  WS-FOUND                PIC X(1).
               88  FOUND               VALUE "Y".
               88  NOT-FOUND           VALUE "N".
           05  WS-END-OF-FILE          PIC X(1).
               88  END-OF-FILE         VALUE "Y".
           05  WS-TORN                 PIC X(1) VALUE "N".
               88  TORN                VALUE "Y".
           05  WS-DEBIT-IX             PIC 9(5) COMP-5.
           05  WS-CREDIT-IX            PIC 9(5) COMP-5.
           05  WS-SOUGHT               PIC X(10).
           05  WS-SOUGHT-IX            PIC 9(5) COMP-5.
           05  WS-NEW-DEBIT            PIC S9(13) COMP-5.
           05  WS-NEW-CREDIT           PIC S9(13) COMP-5.
           05  WS-LAST-ACCOUNT         PIC X(10).
           05  WS-CONSOLE-LINE         PIC X(80).

       PROCEDURE DIVISION.
       MAIN-LINE.
           ACCEPT WS-JOURNAL-NAME FROM ENVIRONMENT "LEDGERJNL"
               ON EXCEPTION MOVE "LEDGERJNL" TO WS-JOURNAL-NAME
           END-ACCEPT
           IF WS-JOURNAL-NAME = SPACES
               MOVE "LEDGERJNL" TO WS-JOURNAL-NAME
           END-IF
           PERFORM LOAD-MASTER
           PERFORM LOAD-JOURNAL
           IF TORN
               PERFORM REPAIR-JOURNAL
           END-IF
           OPEN EXTEND JOURNAL
           IF WS-JOURNAL-STATUS NOT = "00" AND NOT = "05"
               MOVE "LEDGER: CANNOT OPEN JOURNAL" TO WS-CONSOLE-LINE
               PERFORM STOP-ABNORMALLY
           END-IF
           PERFORM CHECK-JOURNAL-UNCHANGED
           OPEN INPUT REQUESTS
           MOVE "N" TO WS-END-OF-FILE
           PERFORM UNTIL END-OF-FILE
               MOVE SPACES TO REQUEST-RECORD
               READ REQUESTS
                   AT END SET END-OF-FILE TO TRUE
                   NOT AT END PERFORM ANSWER-REQUEST
               END-READ
           END-PERFORM
           CLOSE REQUESTS JOURNAL
           MOVE 0 TO RETURN-CODE
           STOP RUN.

      ******************************************************************
      * START OF RUN
      ******************************************************************
       LOAD-MASTER.
           MOVE LOW-VALUES TO WS-LAST-ACCOUNT
           OPEN INPUT MASTER
           IF WS-MASTER-STATUS NOT = "00"
               MOVE "LEDGER: CANNOT OPEN MASTER" TO WS-CONSOLE-LINE
               PERFORM STOP-ABNORMALLY
           END-IF
           MOVE "N" TO WS-END-OF-FILE
           PERFORM UNTIL END-OF-FILE
               READ MASTER
                   AT END SET END-OF-FILE TO TRUE
                   NOT AT END PERFORM LOAD-ACCOUNT
               END-READ
           END-PERFORM
           CLOSE MASTER.

       LOAD-ACCOUNT.
           IF MS-ACCOUNT NOT > WS-LAST-ACCOUNT
               OR MS-BALANCE NOT NUMERIC
               OR WS-ACCOUNT-COUNT = MAX-ACCOUNTS
               MOVE "LEDGER: MASTER NOT ASCENDING, BAD OR TOO LARGE"
                   TO WS-CONSOLE-LINE
               PERFORM STOP-ABNORMALLY
           END-IF
           MOVE MS-ACCOUNT TO WS-LAST-ACCOUNT
           ADD 1 TO WS-ACCOUNT-COUNT
           MOVE MS-ACCOUNT TO AC-NUMBER(WS-ACCOUNT-COUNT)
           MOVE MS-CURRENCY TO AC-CURRENCY(WS-ACCOUNT-COUNT)
           MOVE MS-BALANCE TO AC-BALANCE(WS-ACCOUNT-COUNT).

       LOAD-JOURNAL.
           OPEN INPUT JOURNAL
           IF WS-JOURNAL-STATUS NOT = "00" AND NOT = "05"
               MOVE "LEDGER: CANNOT OPEN JOURNAL" TO WS-CONSOLE-LINE
               PERFORM STOP-ABNORMALLY
           END-IF
           MOVE "N" TO WS-END-OF-FILE
           PERFORM UNTIL END-OF-FILE OR TORN
               MOVE SPACES TO JOURNAL-RECORD
               READ JOURNAL
                   AT END SET END-OF-FILE TO TRUE
                   NOT AT END PERFORM LOAD-TRANSFER
               END-READ
           END-PERFORM
           IF TORN
               PERFORM CHECK-TORN-IS-LAST
           END-IF
           CLOSE JOURNAL.

       LOAD-TRANSFER.
           IF JR-END-MARK NOT = "E" OR JR-NEW-LINE NOT = X"0A"
               SET TORN TO TRUE
           ELSE
               MOVE JR-DEBIT TO WS-SOUGHT
               PERFORM FIND-ACCOUNT
               MOVE WS-SOUGHT-IX TO WS-DEBIT-IX
               MOVE JR-CREDIT TO WS-SOUGHT
               PERFORM FIND-ACCOUNT
               MOVE WS-SOUGHT-IX TO WS-CREDIT-IX
               MOVE JR-REFERENCE TO WS-KEY
               PERFORM FIND-REFERENCE
               IF WS-DEBIT-IX = 0 OR WS-CREDIT-IX = 0 OR FOUND
                   OR JR-SEQUENCE NOT = WS-SEQUENCE + 1
                   OR JR-DEBIT-BALANCE NOT =
                       AC-BALANCE(WS-DEBIT-IX) - JR-AMOUNT
                   OR JR-CREDIT-BALANCE NOT =
                       AC-BALANCE(WS-CREDIT-IX) + JR-AMOUNT
                   MOVE "LEDGER: JOURNAL DAMAGED OR OF ANOTHER MASTER"
                       TO WS-CONSOLE-LINE
                   PERFORM STOP-ABNORMALLY
               END-IF
               PERFORM POST-TRANSFER
           END-IF.

      * ONLY THE VERY LAST RECORD MAY BE INCOMPLETE: THAT IS WHAT A
      * POWER FAILURE LEAVES. ANYTHING AFTER IT IS DAMAGE.
       CHECK-TORN-IS-LAST.
           READ JOURNAL
               AT END CONTINUE
               NOT AT END
                   MOVE "LEDGER: JOURNAL DAMAGED" TO WS-CONSOLE-LINE
                   PERFORM STOP-ABNORMALLY
           END-READ.

      * COPY THE WHOLE RECORDS ASIDE, THEN LET THE COPY TAKE THE
      * JOURNAL'S NAME IN ONE STEP.
       REPAIR-JOURNAL.
           MOVE SPACES TO WS-REPAIRED-NAME
           STRING FUNCTION TRIM(WS-JOURNAL-NAME) ".NEW"
               DELIMITED BY SIZE INTO WS-REPAIRED-NAME
           OPEN INPUT JOURNAL
           OPEN OUTPUT REPAIRED
           PERFORM WS-SEQUENCE TIMES
               READ JOURNAL
               WRITE REPAIRED-RECORD FROM JOURNAL-RECORD
           END-PERFORM
           CLOSE JOURNAL
           CLOSE REPAIRED
           IF WS-REPAIRED-STATUS = "00"
               CALL "CBL_RENAME_FILE"
                   USING WS-REPAIRED-NAME WS-JOURNAL-NAME
           END-IF
           IF WS-REPAIRED-STATUS NOT = "00" OR RETURN-CODE NOT = 0
               MOVE "LEDGER: CANNOT REPAIR JOURNAL" TO WS-CONSOLE-LINE
               PERFORM STOP-ABNORMALLY
           END-IF
           DISPLAY "LEDGER: INCOMPLETE LAST RECORD DROPPED" UPON SYSERR.

      * THE JOURNAL IS NOW LOCKED. ANOTHER RUN MAY HAVE WRITTEN TO IT
      * BETWEEN OUR READING AND THE LOCK: STORAGE IS THEN OLD.
       CHECK-JOURNAL-UNCHANGED.
           CALL "CBL_CHECK_FILE_EXIST"
               USING WS-JOURNAL-NAME WS-FILE-DETAILS
           IF RETURN-CODE NOT = 0
               OR WS-FILE-SIZE NOT = WS-SEQUENCE * 160
               MOVE "LEDGER: JOURNAL CHANGED BY ANOTHER RUN"
                   TO WS-CONSOLE-LINE
               PERFORM STOP-ABNORMALLY
           END-IF.

       STOP-ABNORMALLY.
           DISPLAY FUNCTION TRIM(WS-CONSOLE-LINE)
               " (MASTER " WS-MASTER-STATUS
               " JOURNAL " WS-JOURNAL-STATUS ")" UPON SYSERR
           MOVE 16 TO RETURN-CODE
           STOP RUN.

      ******************************************************************
      * REQUESTS
      ******************************************************************
       ANSWER-REQUEST.
           PERFORM CLEAR-REPLY
           EVALUATE TRUE
               WHEN RQ-OVERRUN NOT = SPACE
                   MOVE "61" TO RP-STATUS
                   MOVE "RECORD TOO LONG" TO RP-MESSAGE
               WHEN RQ-FUNCTION = "BALANCE"
                   PERFORM ANSWER-BALANCE
               WHEN RQ-FUNCTION = "TRANSFER"
                   PERFORM ANSWER-TRANSFER
               WHEN RQ-FUNCTION = "FEE"
                   PERFORM ANSWER-FEE
               WHEN OTHER
                   MOVE "60" TO RP-STATUS
                   MOVE "UNKNOWN FUNCTION" TO RP-MESSAGE
           END-EVALUATE
           DISPLAY WS-REPLY.

       CLEAR-REPLY.
           MOVE RQ-FUNCTION TO RP-FUNCTION
           MOVE "00" TO RP-STATUS
           MOVE "OK" TO RP-MESSAGE
           MOVE RQ-ACCOUNT TO RP-ACCOUNT
           MOVE RQ-OTHER TO RP-OTHER
           MOVE RQ-CURRENCY TO RP-CURRENCY
           MOVE ZERO TO RP-AMOUNT RP-FEE RP-BALANCE RP-OTHER-BALANCE
           MOVE ZERO TO RP-SEQUENCE
           MOVE RQ-REFERENCE TO RP-REFERENCE
           MOVE RQ-TEXT TO RP-TEXT.

       ANSWER-BALANCE.
           MOVE RQ-ACCOUNT TO WS-SOUGHT
           PERFORM FIND-ACCOUNT
           IF WS-SOUGHT-IX = 0
               MOVE "20" TO RP-STATUS
               MOVE "UNKNOWN ACCOUNT" TO RP-MESSAGE
           ELSE
               MOVE AC-CURRENCY(WS-SOUGHT-IX) TO RP-CURRENCY
               MOVE AC-BALANCE(WS-SOUGHT-IX) TO RP-BALANCE
           END-IF.

       ANSWER-FEE.
           SET TF-IX TO 1
           SEARCH WS-TARIFF-ENTRY
               AT END
                   MOVE "50" TO RP-STATUS
                   MOVE "UNKNOWN FEE KIND" TO RP-MESSAGE
               WHEN TF-KIND(TF-IX) = RQ-KIND
                   PERFORM COMPUTE-FEE
           END-SEARCH.

       COMPUTE-FEE.
           IF RQ-AMOUNT NOT NUMERIC
               MOVE "32" TO RP-STATUS
               MOVE "BAD AMOUNT" TO RP-MESSAGE
           ELSE
               MOVE RQ-AMOUNT-N TO RP-AMOUNT
               COMPUTE RP-FEE ROUNDED = TF-FLAT(TF-IX)
                   + RQ-AMOUNT-N * TF-RATE(TF-IX) / 10000
           END-IF.

       ANSWER-TRANSFER.
           MOVE RQ-REFERENCE TO WS-KEY
           PERFORM FIND-REFERENCE
           MOVE RQ-ACCOUNT TO WS-SOUGHT
           PERFORM FIND-ACCOUNT
           MOVE WS-SOUGHT-IX TO WS-DEBIT-IX
           MOVE RQ-OTHER TO WS-SOUGHT
           PERFORM FIND-ACCOUNT
           MOVE WS-SOUGHT-IX TO WS-CREDIT-IX
           EVALUATE TRUE
               WHEN RQ-REFERENCE = SPACES
                   MOVE "40" TO RP-STATUS
                   MOVE "REFERENCE MISSING" TO RP-MESSAGE
               WHEN FOUND
                   PERFORM ANSWER-DUPLICATE
               WHEN WS-DEBIT-IX = 0
                   MOVE "20" TO RP-STATUS
                   MOVE "UNKNOWN ACCOUNT" TO RP-MESSAGE
               WHEN WS-CREDIT-IX = 0
                   MOVE "21" TO RP-STATUS
                   MOVE "UNKNOWN OTHER ACCOUNT" TO RP-MESSAGE
               WHEN WS-DEBIT-IX = WS-CREDIT-IX
                   MOVE "33" TO RP-STATUS
                   MOVE "SAME ACCOUNT" TO RP-MESSAGE
               WHEN RQ-AMOUNT NOT NUMERIC OR RQ-AMOUNT = ZEROS
                   MOVE "32" TO RP-STATUS
                   MOVE "BAD AMOUNT" TO RP-MESSAGE
               WHEN RQ-CURRENCY NOT = AC-CURRENCY(WS-DEBIT-IX)
                 OR RQ-CURRENCY NOT = AC-CURRENCY(WS-CREDIT-IX)
                   MOVE "31" TO RP-STATUS
                   MOVE "CURRENCY MISMATCH" TO RP-MESSAGE
               WHEN RQ-AMOUNT-N > AC-BALANCE(WS-DEBIT-IX)
                   MOVE "30" TO RP-STATUS
                   MOVE "INSUFFICIENT FUNDS" TO RP-MESSAGE
                   MOVE AC-BALANCE(WS-DEBIT-IX) TO RP-BALANCE
               WHEN WS-SEQUENCE NOT < MAX-REFERENCES
                   MOVE "90" TO RP-STATUS
                   MOVE "JOURNAL FULL" TO RP-MESSAGE
               WHEN OTHER
                   PERFORM MAKE-TRANSFER
           END-EVALUATE.

      * THE REPLY SHOWS WHAT WAS DONE THEN, NOT WHAT IS ASKED NOW.
       ANSWER-DUPLICATE.
           IF RQ-AMOUNT IS NUMERIC
               AND RQ-AMOUNT-N = RF-AMOUNT(WS-SLOT)
               AND WS-DEBIT-IX = RF-DEBIT-IX(WS-SLOT)
               AND WS-CREDIT-IX = RF-CREDIT-IX(WS-SLOT)
               MOVE "10" TO RP-STATUS
               MOVE "DUPLICATE REFERENCE" TO RP-MESSAGE
           ELSE
               MOVE "11" TO RP-STATUS
               MOVE "REFERENCE OF ANOTHER TRANSFER" TO RP-MESSAGE
           END-IF
           MOVE AC-NUMBER(RF-DEBIT-IX(WS-SLOT)) TO RP-ACCOUNT
           MOVE AC-NUMBER(RF-CREDIT-IX(WS-SLOT)) TO RP-OTHER
           MOVE AC-CURRENCY(RF-DEBIT-IX(WS-SLOT)) TO RP-CURRENCY
           MOVE RF-AMOUNT(WS-SLOT) TO RP-AMOUNT
           MOVE RF-DEBIT-BALANCE(WS-SLOT) TO RP-BALANCE
           MOVE RF-CREDIT-BALANCE(WS-SLOT) TO RP-OTHER-BALANCE
           MOVE RF-SEQUENCE(WS-SLOT) TO RP-SEQUENCE
           MOVE RF-TEXT(WS-SLOT) TO RP-TEXT.

       MAKE-TRANSFER.
           SUBTRACT RQ-AMOUNT-N FROM AC-BALANCE(WS-DEBIT-IX)
               GIVING WS-NEW-DEBIT
           COMPUTE WS-NEW-CREDIT =
               AC-BALANCE(WS-CREDIT-IX) + RQ-AMOUNT-N
               ON SIZE ERROR MOVE "34" TO RP-STATUS
           END-COMPUTE
           IF RP-STATUS = "34" OR WS-NEW-CREDIT > 9999999999999
               MOVE "34" TO RP-STATUS
               MOVE "BALANCE TOO LARGE" TO RP-MESSAGE
           ELSE
               PERFORM WRITE-JOURNAL
               IF RP-STATUS = "00"
                   PERFORM POST-TRANSFER
                   MOVE JR-AMOUNT TO RP-AMOUNT
                   MOVE JR-DEBIT-BALANCE TO RP-BALANCE
                   MOVE JR-CREDIT-BALANCE TO RP-OTHER-BALANCE
                   MOVE JR-SEQUENCE TO RP-SEQUENCE
               END-IF
           END-IF.

      * AFTER A FAILED WRITE THE TAIL OF THE JOURNAL IS UNKNOWN: THE
      * RUN ENDS, AND THE NEXT RUN READS WHAT THERE IS.
       WRITE-JOURNAL.
           MOVE SPACES TO JOURNAL-RECORD
           COMPUTE JR-SEQUENCE = WS-SEQUENCE + 1
           MOVE RQ-REFERENCE TO JR-REFERENCE
           MOVE RQ-ACCOUNT TO JR-DEBIT
           MOVE RQ-OTHER TO JR-CREDIT
           MOVE RQ-CURRENCY TO JR-CURRENCY
           MOVE RQ-AMOUNT-N TO JR-AMOUNT
           MOVE WS-NEW-DEBIT TO JR-DEBIT-BALANCE
           MOVE WS-NEW-CREDIT TO JR-CREDIT-BALANCE
           MOVE RQ-TEXT TO JR-TEXT
           MOVE FUNCTION CURRENT-DATE(1:14) TO JR-TIME
           MOVE "E" TO JR-END-MARK
           MOVE X"0A" TO JR-NEW-LINE
           WRITE JOURNAL-RECORD
           IF WS-JOURNAL-STATUS NOT = "00"
               MOVE "91" TO RP-STATUS
               MOVE "JOURNAL WRITE FAILED" TO RP-MESSAGE
               DISPLAY WS-REPLY
               MOVE "LEDGER: JOURNAL WRITE FAILED" TO WS-CONSOLE-LINE
               PERFORM STOP-ABNORMALLY
           END-IF.

      ******************************************************************
      * TABLES
      ******************************************************************
       FIND-ACCOUNT.
           MOVE 0 TO WS-SOUGHT-IX
           IF WS-ACCOUNT-COUNT > 0
               SEARCH ALL WS-ACCOUNT-ENTRY
                   AT END CONTINUE
                   WHEN AC-NUMBER(AC-IX) = WS-SOUGHT
                       SET WS-SOUGHT-IX TO AC-IX
               END-SEARCH
           END-IF.

      * LEAVES WS-SLOT AT THE REFERENCE, OR AT THE FREE SLOT FOR IT.
       FIND-REFERENCE.
           MOVE 7 TO WS-HASH
           PERFORM VARYING WS-POSITION FROM 1 BY 1
               UNTIL WS-POSITION > 32
               COMPUTE WS-HASH = WS-HASH * 31
                   + FUNCTION ORD(WS-KEY(WS-POSITION:1))
               DIVIDE WS-HASH BY REFERENCE-SLOTS
                   GIVING WS-QUOTIENT REMAINDER WS-HASH
           END-PERFORM
           COMPUTE WS-SLOT = WS-HASH + 1
           SET NOT-FOUND TO TRUE
           PERFORM UNTIL FOUND OR RF-SEQUENCE(WS-SLOT) = 0
               IF RF-REFERENCE(WS-SLOT) = WS-KEY
                   SET FOUND TO TRUE
               ELSE
                   ADD 1 TO WS-SLOT
                   IF WS-SLOT > REFERENCE-SLOTS
                       MOVE 1 TO WS-SLOT
                   END-IF
               END-IF
           END-PERFORM.

      * THE JOURNAL RECORD IS ON FILE: TAKE IT INTO STORAGE.
       POST-TRANSFER.
           MOVE JR-SEQUENCE TO WS-SEQUENCE
           MOVE JR-DEBIT-BALANCE TO AC-BALANCE(WS-DEBIT-IX)
           MOVE JR-CREDIT-BALANCE TO AC-BALANCE(WS-CREDIT-IX)
           MOVE JR-SEQUENCE TO RF-SEQUENCE(WS-SLOT)
           MOVE JR-REFERENCE TO RF-REFERENCE(WS-SLOT)
           MOVE WS-DEBIT-IX TO RF-DEBIT-IX(WS-SLOT)
           MOVE WS-CREDIT-IX TO RF-CREDIT-IX(WS-SLOT)
           MOVE JR-AMOUNT TO RF-AMOUNT(WS-SLOT)
           MOVE JR-DEBIT-BALANCE TO RF-DEBIT-BALANCE(WS-SLOT)
           MOVE JR-CREDIT-BALANCE TO RF-CREDIT-BALANCE(WS-SLOT)
           MOVE JR-TEXT TO RF-TEXT(WS-SLOT).
